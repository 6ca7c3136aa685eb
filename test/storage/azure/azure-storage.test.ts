/** What the adapter does with answers that neither Azurite nor the fast server gives. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { STORAGE_BODY_STALL_MS, STORAGE_REQUEST_TIMEOUT_MS } from '../../../src/limits.ts';
import { azureStorage } from '../../../src/storage/azure/azure-storage.ts';
import type { BlobWriteOptions, Storage } from '../../../src/storage/ports.ts';
import { codeOf, defined } from '../conformance/subject.ts';

const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'text/plain' };
const blobHeaders = { etag: '"0x1"', 'last-modified': new Date(0).toUTCString(), 'x-ms-blob-type': 'BlockBlob' };

type Answer = (response: ServerResponse, message: IncomingMessage) => void;

let server: Server;
let storage: Storage;
let requests: IncomingMessage[];
let answers: Answer[];

/** Answers requests in turn, the last answer for good. */
beforeEach(async () => {
  requests = [];
  answers = [];
  server = createServer((message, response) => {
    message.resume().once('end', () => {
      requests.push(message);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      answer?.(response, message);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/devstoreaccount1`;
  storage = azureStorage({
    connectionString: `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=a2V5;BlobEndpoint=${endpoint};QueueEndpoint=${endpoint};TableEndpoint=${endpoint}`,
  });
});

afterEach(async () => {
  vi.useRealTimers();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const refuse =
  (status: number, code: string, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'x-ms-error-code': code, ...headers }).end();
  };

const cut: Answer = (response) => {
  response.destroy();
};

describe('azureStorage', () => {
  it('makes a first conflict no second request: nothing of ours can be there', async () => {
    answers = [refuse(409, 'BlobAlreadyExists')];
    const result = await storage.container('photos').write('a', new Uint8Array(1), ABSENT);
    expect(result).toEqual({ outcome: 'conflict' });
    expect(requests).toHaveLength(1);
  });

  it.each([
    [412, 'ConditionNotMet'],
    [412, 'TargetConditionNotMet'],
    [409, 'BlobAlreadyExists'],
    [409, 'BlobArchived'],
    [409, 'BlobBeingRehydrated'],
    [409, 'BlobImmutableDueToPolicy'],
    [409, 'InvalidBlobType'],
    [403, 'UnauthorizedBlobOverwrite'],
  ])('answers conflict for %i %s', async (status, code) => {
    answers = [refuse(status, code)];
    expect(await storage.container('photos').write('a', new Uint8Array(1), ABSENT)).toEqual({ outcome: 'conflict' });
    expect(await storage.container('photos').commitBlocks('a', [], ABSENT)).toEqual({ outcome: 'conflict' });
  });

  it.each([
    [403, 'AuthorizationFailure', 'not-allowed'],
    [403, 'AuthorizationPermissionMismatch', 'not-allowed'],
    [404, 'ContainerNotFound', 'not-found'],
    [409, 'ContainerBeingDeleted', 'storage-failed'],
    [400, 'InvalidHeaderValue', 'storage-failed'],
  ])('a write that is refused with %i %s is no conflict', async (status, code, expected) => {
    answers = [refuse(status, code)];
    expect(await codeOf(storage.container('photos').write('a', new Uint8Array(1), ABSENT))).toBe(expected);
    expect(requests).toHaveLength(1);
  });

  it('tries a bounded number of times, and the libraries do not try in between', async () => {
    answers = [refuse(503, 'ServerBusy')];
    expect(await codeOf(storage.container('photos').head('a'))).toBe('storage-failed');
    expect(requests).toHaveLength(5);
    expect(await codeOf(storage.table('pending').get('p', 'r'))).toBe('storage-failed');
    expect(requests).toHaveLength(10);
    expect(await codeOf(storage.queue('wake').send('x'))).toBe('storage-failed');
    expect(requests).toHaveLength(15);
    expect(await codeOf(storage.table('pending').batch('p', [{ kind: 'upsert', rowKey: 'r', values: {} }]))).toBe(
      'storage-failed',
    );
    expect(requests).toHaveLength(20);
  });

  it('reads a body with one GET and no HEAD', async () => {
    answers = [(response) => response.writeHead(200, { ...blobHeaders, 'content-length': 4 }).end('body')];
    const found = await storage.container('photos').read('a', 10);
    expect(new TextDecoder().decode(found?.bytes)).toBe('body');
    expect(requests.map((request) => request.method)).toEqual(['GET']);
  });

  it('refuses a body above the limit without reading it', async () => {
    answers = [(response) => response.writeHead(200, { ...blobHeaders, 'content-length': 1_000_000_000 }).write('x')];
    expect(await codeOf(storage.container('photos').read('a', 10))).toBe('blob-corrupt');
  });

  it.each([
    ['reset', (response: ServerResponse) => response.destroy()],
    ['ended', (response: ServerResponse) => response.socket?.end()],
  ])('reads a body again from its beginning when the connection was %s in the middle', async (_what, end) => {
    answers = [
      (response) => {
        response.writeHead(200, { ...blobHeaders, 'content-length': 8 });
        response.write('1234', () => end(response));
      },
      (response) => response.writeHead(200, { ...blobHeaders, etag: '"0x2"', 'content-length': 4 }).end('5678'),
    ];
    const found = await storage.container('photos').read('a', 10);
    expect(found?.etag).toBe('0x2');
    expect(new TextDecoder().decode(found?.bytes)).toBe('5678');
    expect(requests).toHaveLength(2);
  });

  it('fails with an AriusError when a body that is being read cannot be continued', async () => {
    answers = [
      (response) => {
        response.writeHead(200, { ...blobHeaders, 'content-length': 8 });
        response.write('1234', () => response.destroy());
      },
      cut,
    ];
    const opened = await storage.container('photos').openRead('a');
    const read = (async () => {
      for await (const piece of defined(opened).body) {
        expect(new TextDecoder().decode(piece)).toBe('1234');
      }
    })();
    expect(await codeOf(read)).toBe('storage-failed');
  });

  it('does not end the process when a connection breaks while nobody reads', async () => {
    answers = [
      (response) => {
        response.writeHead(200, { ...blobHeaders, 'content-length': 8 });
        response.write('1234', () => setTimeout(() => response.destroy(), 20));
      },
      cut,
    ];
    const opened = await storage.container('photos').openRead('a');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await defined(opened).body[Symbol.asyncIterator]().return?.();
  });

  it('gives up a request that is not answered in time, and makes it again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    answers = [() => {}, (response) => response.writeHead(200, blobHeaders).end()];
    const head = storage.container('photos').head('a');
    await vi.waitFor(() => expect(requests).toHaveLength(1));
    await vi.advanceTimersByTimeAsync(STORAGE_REQUEST_TIMEOUT_MS);
    expect(await head).toMatchObject({ etag: '0x1' });
    expect(requests).toHaveLength(2);
  });

  it('gives up a body that brings no more bytes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    answers = [(response) => response.writeHead(200, { ...blobHeaders, 'content-length': 8 }).write('1234')];
    const opened = defined(await storage.container('photos').openRead('a'));
    const pieces = opened.body[Symbol.asyncIterator]();
    expect(new TextDecoder().decode((await pieces.next()).value)).toBe('1234');
    const stalled = codeOf(pieces.next());
    await vi.advanceTimersByTimeAsync(STORAGE_BODY_STALL_MS);
    expect(await stalled).toBe('storage-failed');
  });

  it('takes a batch whose answer was cut short for unanswered, and reads the rows back', async () => {
    const entity = JSON.stringify({ 'odata.etag': 'W/"2"', PartitionKey: 'p', RowKey: 'r', n: 1 });
    answers = [
      (response) => response.writeHead(202, { 'content-type': 'multipart/mixed' }).end('--batchresponse_1\r\n'),
      (response) =>
        response
          .writeHead(202, { 'content-type': 'multipart/mixed' })
          .end(
            '--changesetresponse_1\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en","value":"0:The entity exists."}}}\r\n',
          ),
      (response) => response.writeHead(200, { 'content-type': 'application/json;odata=fullmetadata' }).end(entity),
    ];
    const result = await storage.table('pending').batch('p', [{ kind: 'insert', rowKey: 'r', values: { n: 1 } }]);
    expect(result).toEqual({ outcome: 'written' });
    expect(requests.map((request) => request.method)).toEqual(['POST', 'POST', 'GET']);
  });

  it('refuses a connection string without an account key', () => {
    const endpoint = 'https://account.blob.core.windows.net';
    expect(() =>
      azureStorage({ connectionString: `BlobEndpoint=${endpoint};SharedAccessSignature=sv=2025-11-05&sig=x` }),
    ).toThrow('account key');
  });
});
