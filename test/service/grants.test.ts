import { describe, expect, it } from 'vitest';
import { grantRequest } from '../../src/contract/schemas.ts';
import { DEBRIS_AGE_MS, GRANT_LIFETIME_MS } from '../../src/limits.ts';
import { Archive } from './support/archive.ts';

describe('grants', () => {
  it('invariant 8: sign one named blob of the repository, create-only or read, for an hour, without asking storage', async () => {
    const archive = await new Archive().create();
    const names = [`chunks/${archive.hashOf('a')}`, `filetrees/${archive.hashOf('b')}`];
    await archive.service.grants.grant('photos', { purpose: 'read', names });
    const before = archive.counting.counts();
    for (const [purpose, permissions] of [
      ['create', 'c'],
      ['read', 'r'],
    ] as const) {
      const { grants } = await archive.service.grants.grant('photos', { purpose, names });
      expect(grants.map((grant) => grant.name)).toEqual(names);
      for (const grant of grants) {
        expect(archive.memory.signer.verify(grant.url, archive.clock.now())).toEqual({
          container: 'photos',
          name: grant.name,
          permissions,
        });
        const lifetimeMs = Date.parse(grant.expiresAt) - archive.clock.now().getTime();
        expect(lifetimeMs).toBe(GRANT_LIFETIME_MS);
        const after = new Date(archive.clock.now().getTime() + GRANT_LIFETIME_MS);
        expect(() => archive.memory.signer.verify(grant.url, after)).toThrow();
      }
    }
    expect(archive.counting.counts()).toEqual(before);
  });

  it('invariant 8: nothing but chunks and filetrees is ever granted', async () => {
    const archive = await new Archive().create();
    const hash = archive.hashOf('a');
    const others = [
      'chunk-index/ab',
      'snapshots/2026-05-01T120000.000Z',
      `chunks-v5legacy-metadata/${hash}`,
      `chunks/${hash}/x`,
      `chunks/../snapshots/${hash}`,
      `chunks/${hash.toUpperCase()}`,
      'chunks/',
    ];
    for (const name of others) {
      expect(grantRequest.safeParse({ purpose: 'create', names: [name] }).success).toBe(false);
      const granted = archive.service.grants.grant('photos', { purpose: 'create', names: [name] });
      await expect(granted).rejects.toMatchObject({ code: 'not-allowed' });
    }
  });
});

describe('staging grants', () => {
  it('sign a staging name of this repository, run and content', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const contentHash = archive.hashOf('gigabytes');
    const granted = await archive.service.grants.grantStaging('photos', { contentHash, runId });
    if (granted.outcome !== 'granted') {
      throw new Error('Nothing was granted');
    }
    expect(granted.stagingName).toBe(`photos/uploads/${runId}/${contentHash}`);
    expect(archive.memory.signer.verify(granted.url, archive.clock.now())).toMatchObject({
      container: 'arius-staging',
      name: granted.stagingName,
    });
  });

  it('say that the chunk exists, and record it, instead of taking gigabytes again', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const contentHash = await archive.uploadLarge('gigabytes');
    const answer = await archive.service.grants.grantStaging('photos', { contentHash, runId });
    expect(answer).toMatchObject({ outcome: 'exists', entry: { contentHash, originalSize: 9 } });
    expect(await archive.pendingRows()).toBe(1);
  });

  it('are refused while another upload is in the way, and say until when', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const contentHash = archive.hashOf('gigabytes');
    await archive.uploadDebris(contentHash);
    await expect(archive.service.grants.grantStaging('photos', { contentHash, runId })).rejects.toMatchObject({
      code: 'not-finished',
      retryAfterSeconds: DEBRIS_AGE_MS / 1000,
    });
    archive.clock.advance(DEBRIS_AGE_MS);
    const granted = await archive.service.grants.grantStaging('photos', { contentHash, runId });
    expect(granted.outcome).toBe('granted');
  });

  it('are refused when another kind of chunk has the name, which is kept', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const contentHash = await archive.uploadTar('gigabytes');
    await expect(archive.service.grants.grantStaging('photos', { contentHash, runId })).rejects.toMatchObject({
      code: 'chunk-type-conflict',
      message: expect.stringContaining(`chunks/${contentHash}`) as string,
    });
    expect(await archive.names('chunks/')).toHaveLength(1);
  });
});
