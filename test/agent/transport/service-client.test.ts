import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ServiceClient } from '../../../src/agent/transport/service-client.ts';
import { HTTP_ATTEMPTS_MAX } from '../../../src/limits.ts';

const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) {
    await close();
  }
});

interface Scripted {
  readonly client: ServiceClient;
  readonly requests: { method: string; url: string; key: unknown; body: string }[];
  readonly pauses: number[];
  readonly abort: AbortController;
}

type Reply = (response: ServerResponse) => void;

const health = { status: 'ok', version: '1.0.0', time: '2026-01-01T00:00:00.000Z' };

function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, headers);
    response.end(JSON.stringify(body));
  };
}

function problem(status: number, code: string, extra: Record<string, unknown> = {}): Reply {
  return json(status, { type: 'x', title: 'x', status, code, detail: 'It is so.', next: 'Do this.', ...extra });
}

const cut: Reply = (response) => {
  response.destroy();
};

/** Answers with the replies in turn, and with the last one from then on. */
async function scripted(...replies: Reply[]): Promise<Scripted> {
  const requests: Scripted['requests'] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      requests.push({
        method: request.method ?? '',
        url: request.url ?? '',
        key: request.headers['x-functions-key'],
        body: Buffer.concat(parts).toString(),
      });
      (replies[requests.length - 1] ?? replies.at(-1))?.(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const abort = new AbortController();
  const pauses: number[] = [];
  const client = new ServiceClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    functionKey: 'key',
    signal: abort.signal,
    sleep: async (durationMs) => {
      pauses.push(durationMs);
    },
  });
  closing.push(
    () => server.close(),
    () => client.close(),
  );
  return { client, requests, pauses, abort };
}

describe('ServiceClient', () => {
  it('fills the route, sends the key, and checks the answer', async () => {
    const { client, requests } = await scripted(json(200, { snapshots: [], continuation: null }));
    const params = { repository: 'my repo/x' };
    expect(await client.call('listSnapshots', { params, query: { source: 'a b', continuation: undefined } })).toEqual({
      snapshots: [],
      continuation: null,
    });
    expect(requests).toEqual([
      { method: 'GET', url: '/api/repositories/my%20repo%2Fx/snapshots?source=a+b', key: 'key', body: '' },
    ]);
  });

  it.each([
    ['a cut connection', cut],
    ['503', json(503, {})],
    ['502', json(502, '<html>')],
    ['429', json(429, {})],
    ['500 internal', problem(500, 'internal')],
    ['503 busy', problem(503, 'busy')],
    ['503 pending-not-flushed', problem(503, 'pending-not-flushed')],
  ])('asks again after %s', async (_, reply) => {
    const { client, requests, pauses } = await scripted(reply, reply, json(200, health));
    expect(await client.call('health', {})).toEqual(health);
    expect(requests).toHaveLength(3);
    expect(pauses).toHaveLength(2);
  });

  it('waits as long as the service asks, by header or by problem', async () => {
    const { client, pauses } = await scripted(
      json(503, {}, { 'retry-after': '7' }),
      problem(503, 'busy', { retryAfterSeconds: 9 }),
      json(200, health),
    );
    await client.call('health', {});
    expect(pauses[0]).toBeGreaterThanOrEqual(7000);
    expect(pauses[1]).toBeGreaterThanOrEqual(9000);
  });

  it('gives up after a number of attempts, with the last reason', async () => {
    const { client, requests } = await scripted(problem(503, 'busy'));
    await expect(client.call('health', {})).rejects.toMatchObject({ code: 'busy', exitCode: 4 });
    expect(requests).toHaveLength(HTTP_ATTEMPTS_MAX);
  });

  it.each([
    [400, 'bad-request'],
    [404, 'repository-not-found'],
    [409, 'passphrase-missing-in-service'],
    [409, 'chunk-index-corrupt'],
    [403, 'not-allowed'],
  ])('does not repeat %i %s, and passes it on as it is', async (status, code) => {
    const { client, requests } = await scripted(problem(status, code));
    await expect(client.call('health', {})).rejects.toMatchObject({ code, message: 'It is so.', next: 'Do this.' });
    expect(requests).toHaveLength(1);
  });

  it('takes a code it does not know for a defect, and keeps what was said', async () => {
    const { client } = await scripted(problem(418, 'invented-later'));
    await expect(client.call('health', {})).rejects.toMatchObject({ code: 'internal', message: 'It is so.' });
  });

  it.each([
    ['401', json(401, ''), 'unauthorized'],
    ['403 without a problem', json(403, ''), 'unauthorized'],
    ['404 without a problem', json(404, '<html>'), 'service-unreachable'],
    ['200 with something else', json(200, { hello: 'world' }), 'service-unreachable'],
  ])('understands %s', async (_, reply, code) => {
    const { client } = await scripted(reply);
    await expect(client.call('health', {})).rejects.toMatchObject({ code });
  });

  it('AR-19: ends with the reason of the abort, not with what fell over because of it', async () => {
    const { client, abort } = await scripted(() => undefined);
    const reason = new Error('interrupted');
    const calling = client.call('health', {});
    setTimeout(() => abort.abort(reason), 10);
    await expect(calling).rejects.toBe(reason);
  });
});
