/**
 * A storage account over HTTP in memory, several times as fast as Azurite: for tests that show throughput, and for
 * those that move more bytes or objects than Azurite can take. It knows no keys, so nothing is authenticated; expiry
 * and permissions of signatures hold.
 *
 *   node test/support/fast-storage-server.ts [--discard-bodies BYTES]
 *
 * prints its connection string as one line and serves until it is ended or the pipe at its standard input closes.
 * `--discard-bodies`: of bodies above this size that are put under `chunks/`, length and MD5 are kept, the bytes are
 * not.
 */

import { createHash } from 'node:crypto';
import { fstatSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { BlobBody } from '../../src/storage/memory/blob-body.ts';
import { MemoryAccount } from '../../src/storage/memory/memory-account.ts';
import { StorageRefusal } from '../../src/storage/refusal.ts';
import { accessOf } from './fast-storage/blob-access.ts';
import { handleBlob } from './fast-storage/blob-rest.ts';
import { handleQueue } from './fast-storage/queue-rest.ts';
import { type RestAnswer, type RestRequest, refusalAnswer } from './fast-storage/rest.ts';
import { handleTable } from './fast-storage/table-rest.ts';

const ACCOUNT = 'devstoreaccount1';
const DISCARDED_PREFIX = 'chunks/';

export interface FastStorageServer {
  readonly connectionString: string;
  readonly account: MemoryAccount;
  stop(): Promise<void>;
}

export async function startFastStorageServer(
  options: { readonly discardBodiesAboveBytes?: number | undefined } = {},
): Promise<FastStorageServer> {
  const account = new MemoryAccount({ now: () => new Date() });
  const discardAbove = options.discardBodiesAboveBytes ?? Number.POSITIVE_INFINITY;
  const servers = {
    Blob: await listen((request, message) => serveBlob(account, request, message, discardAbove)),
    Queue: await listen(async (request, message) => handleQueue(account, request, await readText(message))),
    Table: await listen(async (request, message) => handleTable(account, request, await readText(message))),
  };
  const endpoints = Object.entries(servers).map(
    ([service, server]) => `${service}Endpoint=http://127.0.0.1:${(server.address() as AddressInfo).port}/${ACCOUNT}`,
  );
  // Any key does: it is never checked.
  const key = Buffer.from('fast-storage-server').toString('base64');
  return {
    connectionString: [
      'DefaultEndpointsProtocol=http',
      `AccountName=${ACCOUNT}`,
      `AccountKey=${key}`,
      ...endpoints,
    ].join(';'),
    account,
    stop: async () => {
      await Promise.all(Object.values(servers).map(close));
    },
  };
}

type Serve = (request: RestRequest, message: IncomingMessage) => Promise<RestAnswer>;

async function listen(serve: Serve): Promise<Server> {
  const server = createServer((message, response) => {
    serve(parseRequest(message.method ?? '', message.url ?? '/', message.headers), message)
      .then((answer) => respond(response, answer))
      .catch((error: unknown) => {
        process.stderr.write(`fast storage server: ${String(error)}\n`);
        response.destroy();
      });
  });
  // Clients keep their connections; a server that closes idle ones makes them meet resets.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

async function serveBlob(
  account: MemoryAccount,
  request: RestRequest,
  message: IncomingMessage,
  discardAbove: number,
): Promise<RestAnswer> {
  const name = request.path.slice(1).join('/');
  const length = Number(message.headers['content-length'] ?? 0);
  const isDiscarded = length > discardAbove && name.startsWith(DISCARDED_PREFIX);
  const body = isDiscarded ? await readDigest(message) : new BlobBody([await readBytes(message)]);
  try {
    const access = accessOf(request.query, account.now());
    return handleBlob({ account, sourceRequest: (url) => sourceRequest(account, url) }, request, access, body);
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return refusalAnswer(error, request.method);
    }
    throw error;
  }
}

function sourceRequest(
  account: MemoryAccount,
  sourceUrl: string,
): { request: RestRequest; access: ReturnType<typeof accessOf> } {
  const url = new URL(sourceUrl);
  const request = parseRequest('GET', `${url.pathname}${url.search}`, {});
  return { request, access: accessOf(request.query, account.now()) };
}

/** `target`: path and query, the account first. */
export function parseRequest(method: string, target: string, headers: IncomingMessage['headers']): RestRequest {
  const queryStart = target.indexOf('?');
  const pathname = queryStart < 0 ? target : target.slice(0, queryStart);
  const [, , ...path] = pathname.split('/').map(decodeURIComponent);
  return {
    method,
    path: path.at(-1) === '' ? path.slice(0, -1) : path,
    query: new URLSearchParams(queryStart < 0 ? '' : target.slice(queryStart + 1)),
    headers: headers as RestRequest['headers'],
  };
}

function respond(response: ServerResponse, answer: RestAnswer): void {
  const { body } = answer;
  response.writeHead(answer.status, {
    date: new Date().toUTCString(),
    'x-ms-request-id': 'fast',
    ...(typeof body === 'string' ? { 'content-length': Buffer.byteLength(body) } : {}),
    ...(body === undefined && answer.headers?.['content-length'] === undefined ? { 'content-length': 0 } : {}),
    ...answer.headers,
  });
  if (body === undefined || typeof body === 'string') {
    response.end(body);
    return;
  }
  writePieces(response, body[Symbol.iterator]());
}

/** Waits for the reader, so that a slow one does not make the server hold a second copy. */
function writePieces(response: ServerResponse, pieces: Iterator<Uint8Array>): void {
  for (let piece = pieces.next(); piece.done !== true; piece = pieces.next()) {
    if (!response.write(piece.value)) {
      response.once('drain', () => writePieces(response, pieces));
      return;
    }
  }
  response.end();
}

/** One buffer of its own: the pieces of a socket are views on buffers many times their size. */
async function readBytes(message: IncomingMessage): Promise<Uint8Array> {
  const announced = message.headers['content-length'];
  if (announced === undefined) {
    return new Uint8Array(await buffer(message));
  }
  const bytes = new Uint8Array(Number(announced));
  let offset = 0;
  for await (const piece of message as AsyncIterable<Uint8Array>) {
    bytes.set(piece, offset);
    offset += piece.byteLength;
  }
  if (offset !== bytes.byteLength) {
    throw new Error('A request body was cut off');
  }
  return bytes;
}

async function readText(message: IncomingMessage): Promise<string> {
  return Buffer.from(await readBytes(message)).toString('utf8');
}

/** Length and MD5 of a body that is not kept; reading it gives zeros. */
class DiscardedBody extends BlobBody {
  override readonly lengthBytes: number;
  readonly #md5: string;

  constructor(lengthBytes: number, md5: string) {
    super([]);
    this.lengthBytes = lengthBytes;
    this.#md5 = md5;
  }

  override get md5(): string {
    return this.#md5;
  }

  override *views(offsetBytes: number, lengthBytes: number, pieceBytesMax: number): Generator<Uint8Array> {
    const end = Math.min(offsetBytes + lengthBytes, this.lengthBytes);
    for (let at = offsetBytes; at < end; at += pieceBytesMax) {
      yield new Uint8Array(Math.min(pieceBytesMax, end - at));
    }
  }
}

async function readDigest(message: IncomingMessage): Promise<DiscardedBody> {
  const hash = createHash('md5');
  let lengthBytes = 0;
  for await (const piece of message) {
    hash.update(piece);
    lengthBytes += piece.byteLength;
  }
  return new DiscardedBody(lengthBytes, hash.digest('base64'));
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { 'discard-bodies': { type: 'string' } } });
  const discardBodiesAboveBytes = values['discard-bodies'] === undefined ? undefined : Number(values['discard-bodies']);
  const server = await startFastStorageServer({ discardBodiesAboveBytes });
  process.stdout.write(`${server.connectionString}\n`);
  const stdin = fstatSync(0);
  if (stdin.isFIFO() || stdin.isSocket()) {
    // A pipe ends with whoever started us.
    process.stdin.resume();
    process.stdin.once('end', () => process.exit(0));
  }
  process.once('SIGTERM', () => process.exit(0));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main();
}
