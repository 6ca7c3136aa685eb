import { randomUUID } from 'node:crypto';
import type { HttpRequest } from '@azure/functions';
import { beforeEach, describe, expect, it } from 'vitest';
import './support/functions-core.ts';
import '../../functions/http/chunks.ts';
import '../../functions/http/grants.ts';
import '../../functions/http/operations.ts';
import '../../functions/http/repositories.ts';
import '../../functions/http/runs.ts';
import '../../functions/http/snapshots.ts';
import { registeredRoutes } from '../../functions/http-route.ts';
import type { RouteName } from '../../src/contract/routes.ts';
import { problem } from '../../src/contract/schemas.ts';
import { AriusError } from '../../src/errors.ts';
import { REQUEST_BODY_BYTES_MAX } from '../../src/limits.ts';
import type { Service } from '../../src/service/service.ts';
import { Archive } from '../service/support/archive.ts';

interface Sent {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: what a body holds is what the test says
  readonly body: any;
}

let archive: Archive;
let logged: unknown[][];

beforeEach(async () => {
  archive = await new Archive().create();
  logged = [];
});

async function send(
  route: RouteName,
  options: {
    params?: Record<string, string>;
    body?: unknown;
    text?: string;
    query?: string;
    service?: () => Promise<Service>;
  } = {},
): Promise<Sent> {
  const text = options.text ?? (options.body === undefined ? '' : JSON.stringify(options.body));
  const request = {
    params: options.params ?? {},
    url: `http://localhost/api/x${options.query ?? ''}`,
    headers: new Headers({ 'content-length': String(Buffer.byteLength(text)) }),
    arrayBuffer: () => Promise.resolve(new TextEncoder().encode(text).buffer),
  } as unknown as HttpRequest;
  const respond = registeredRoutes.get(route);
  const log = { error: (...parts: unknown[]) => void logged.push(parts) };
  const response = await respond?.(options.service ?? (() => Promise.resolve(archive.service)), request, log);
  const headers = (response?.headers ?? {}) as Record<string, string>;
  const body = response?.jsonBody ?? (typeof response?.body === 'string' ? JSON.parse(response.body) : undefined);
  return { status: response?.status ?? 0, headers, body };
}

describe('requests', () => {
  it('reach their use case with path, query and body', async () => {
    const runId = randomUUID();
    const params = { repository: 'photos' };
    const started = await send('startRun', { params, body: { runId, source: 'nas:/photos' } });
    expect(started).toMatchObject({ status: 200, body: { runId, state: 'started' } });
    expect((await send('getRun', { params: { ...params, runId } })).body).toEqual(started.body);
    const listed = await send('listSnapshots', { params, query: '?source=nas%3A%2Fphotos' });
    expect(listed).toMatchObject({ status: 200, body: { snapshots: [], continuation: null } });
    expect(await send('createRepository', { body: { name: 'videos', kind: 'plain' } })).toMatchObject({ status: 201 });
  });

  it('that start long work answer 202 with Location and Retry-After, and announce the job', async () => {
    const runId = await archive.startRun();
    const body = { rootHash: null, fileCount: 0, originalSize: 0 };
    const completed = await send('completeRun', { params: { repository: 'photos', runId }, body });
    const operationId = `complete-${runId}`;
    expect(completed).toMatchObject({ status: 202, body: { operationId, state: 'waiting' } });
    const location = `/api/repositories/photos/operations/${operationId}`;
    expect(completed.headers).toMatchObject({ Location: location, 'Retry-After': '1' });
    expect(JSON.stringify(completed.body)).not.toContain('http');
    const messages = await archive.memory.queue('arius-jobs').receive({ max: 10, invisibleSeconds: 30 });
    expect(messages.map((message) => JSON.parse(message.text))).toEqual([{ repository: 'photos' }]);
    const polled = await send('getOperation', { params: { repository: 'photos', operationId } });
    expect(polled).toMatchObject({ status: 200, headers: { 'Retry-After': '1' } });
  });

  it('that cannot announce a job answer all the same: the timer finds the row', async () => {
    const runId = await archive.startRun();
    archive.memory.onRequest = ({ kind }) => {
      if (kind === 'queue-send') {
        throw new Error('no queue');
      }
    };
    const body = { rootHash: null, fileCount: 0, originalSize: 0 };
    expect(await send('completeRun', { params: { repository: 'photos', runId }, body })).toMatchObject({ status: 202 });
    expect((await archive.service.housekeeping.waitingWork('photos')).dispatcher).toBe(true);
    expect(logged).toHaveLength(1);
  });
});

describe('problems', () => {
  it('are problem+json with a stable code and the next step', async () => {
    const missing = await send('getRepository', { params: { repository: 'not-there' } });
    expect(missing.status).toBe(404);
    expect(missing.headers['Content-Type']).toBe('application/problem+json');
    expect(problem.parse(missing.body)).toMatchObject({ code: 'repository-not-found', status: 404 });
    expect(logged).toEqual([]);
  });

  it.each([
    ['a bad repository name', 'getRepository', { params: { repository: 'No_Name' } }, 'repository'],
    ['a reserved repository name', 'getRepository', { params: { repository: 'arius-staging' } }, 'arius-staging'],
    ['a bad run id', 'getRun', { params: { repository: 'photos', runId: 'x' } }, 'runId'],
    ['a bad hash', 'commitChunk', { params: { repository: 'photos', hash: 'AB' }, body: {} }, 'hash'],
    ['a bad snapshot name', 'getSnapshot', { params: { repository: 'photos', name: '../x' } }, 'name'],
    ['a bad operation id', 'getOperation', { params: { repository: 'photos', operationId: 'A_B' } }, 'operationId'],
    ['no JSON', 'lookup', { params: { repository: 'photos' }, text: '{' }, 'not JSON'],
    ['a missing field', 'lookup', { params: { repository: 'photos' }, body: {} }, 'hashes'],
    [
      'an unknown field',
      'lookup',
      { params: { repository: 'photos' }, body: { hashes: ['ab'.repeat(32)], x: 1 } },
      'x',
    ],
    [
      'too many hashes',
      'lookup',
      { params: { repository: 'photos' }, body: { hashes: Array(1001).fill('ab'.repeat(32)) } },
      'hashes',
    ],
    [
      'a large body',
      'lookup',
      { params: { repository: 'photos' }, text: 'x'.repeat(REQUEST_BODY_BYTES_MAX + 1) },
      'larger',
    ],
    [
      'a name outside chunks and filetrees',
      'grants',
      { params: { repository: 'photos' }, body: { purpose: 'create', names: ['snapshots/x'] } },
      'names',
    ],
  ] as const)('say what is wrong with %s', async (_what, route, options, said) => {
    const answer = await send(route, options);
    expect([400, 403]).toContain(answer.status);
    expect(answer.body.detail).toContain(said);
    expect(answer.body.next).not.toBe('');
    expect(logged).toEqual([]);
  });

  it('carry Retry-After when it is known', async () => {
    const service = (): Promise<Service> =>
      Promise.reject(new AriusError('busy', 'It changes.', 'Try again.', { retryAfterSeconds: 7 }));
    const answer = await send('getRepository', { params: { repository: 'photos' }, service });
    expect(answer).toMatchObject({ status: 503, headers: { 'Retry-After': '7' }, body: { code: 'busy' } });
  });

  it('of the program itself show an id and no more; the log has the rest', async () => {
    const service = (): Promise<Service> => Promise.reject(new Error('secret detail'));
    const answer = await send('getRepository', { params: { repository: 'photos' }, service });
    expect(answer).toMatchObject({ status: 500, body: { code: 'internal' } });
    expect(JSON.stringify(answer.body)).not.toContain('secret detail');
    const errorId = /error id ([0-9a-f-]{36})/.exec(answer.body.detail)?.[1] ?? 'none';
    expect(JSON.stringify(logged)).toContain(errorId);
    expect(JSON.stringify(logged)).toContain('secret detail');
  });
});
