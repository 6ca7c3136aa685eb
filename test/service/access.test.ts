import { describe, expect, it } from 'vitest';
import type { RouteName } from '../../src/contract/routes.ts';
import { ROUTES } from '../../src/contract/routes.ts';
import { authorize, keyLevelOf, requireRepositoryName } from '../../src/service/access.ts';

describe('access', () => {
  it('asks for a key everywhere but for liveness', () => {
    const open = (Object.keys(ROUTES) as RouteName[]).filter((route) => keyLevelOf(route) === 'anonymous');
    expect(open).toEqual(['health']);
    expect(authorize('health', undefined)).toEqual({ caller: 'anyone', repository: undefined });
    expect(authorize('lookup', 'photos')).toEqual({ caller: 'key-holder', repository: 'photos' });
  });

  it.each([
    '',
    'ab',
    'Photos',
    'photos_2',
    '-photos',
    'photos-',
    'pho--tos',
    'a'.repeat(64),
    '../photos',
    'photos/x',
    '$web',
  ])('refuses %j as the name of a repository', (name) => {
    expect(() => requireRepositoryName(name)).toThrow(expect.objectContaining({ code: 'bad-request' }));
  });

  it.each(['arius-staging', 'arius-jobs', 'azure-webjobs-secrets', 'hub-leases', 'hub-applease', 'hub-largemessages'])(
    'keeps %s for itself',
    (name) => {
      expect(() => authorize('grants', name)).toThrow(expect.objectContaining({ code: 'not-allowed' }));
    },
  );

  it('takes any other container name', () => {
    for (const name of ['default', 'photos-2026', '007', 'a'.repeat(63), 'arius']) {
      expect(() => requireRepositoryName(name)).not.toThrow();
    }
  });
});
