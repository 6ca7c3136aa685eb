/**
 * Blob Storage as an agent meets it: signed URLs of single blobs, plain HTTP. A create is one conditional Put Blob that
 * carries body, metadata and tier together; nothing here can overwrite, list or delete.
 */

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher, request } from 'undici';
import { AriusError } from '../../errors.ts';
import { HTTP_ATTEMPTS_MAX, HTTP_SILENCE_MS_MAX } from '../../limits.ts';
import { reasonOf } from '../files/system-errors.ts';
import { backoffMs, type Sleep, sleep } from './retry.ts';

/** A body that can be sent again from its start. */
export interface BlobBody {
  readonly lengthBytes: number;
  /** Base64, which the storage compares with what arrived. */
  readonly md5: string;
  open(): AsyncIterable<Uint8Array>;
}

export interface PutBlobOptions {
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly tier: 'hot' | 'cool' | 'cold';
}

/**
 * `conflict`: 403, 409 or 412 under a create-only grant; what is there must be asked of the service.
 * `refused`: the signature itself is not accepted (any more); a new grant may help.
 * `unknown`: no answer came, so the blob may be there or not.
 */
export type PutOutcome = 'created' | 'conflict' | 'refused' | 'unknown';

/** Counted by the classes the price list knows. */
export interface BlobRequestCounts {
  'blob-write': number;
  'blob-read': number;
}

/** Occurs when a granted read finds no blob. */
export class BlobMissingError extends Error {}
/** Occurs when a granted read finds a blob in the archive tier. */
export class BlobArchivedError extends Error {}

/** Error codes of a signature that is expired or wrong; every other 403 speaks of the blob. */
const SIGNATURE_REFUSED: ReadonlySet<string> = new Set([
  'AuthenticationFailed',
  'AuthorizationFailure',
  'InvalidAuthenticationInfo',
]);

interface Reply {
  readonly status: number;
  readonly errorCode: string;
  readonly retryAfterSeconds: number | undefined;
}

export class BlobClient {
  readonly counts: BlobRequestCounts = { 'blob-write': 0, 'blob-read': 0 };
  readonly #signal: AbortSignal;
  readonly #sleep: Sleep;
  readonly #dispatcher: Dispatcher;
  readonly #throttle: (bytes: Uint8Array) => Promise<void>;
  bytesDownloaded = 0;
  bytesSent = 0;

  constructor(options: {
    signal: AbortSignal;
    sleep?: Sleep;
    /** Called before bytes are sent; resolves when they may be (an upload limit). */
    throttle?: (bytes: Uint8Array) => Promise<void>;
  }) {
    this.#signal = options.signal;
    this.#sleep = options.sleep ?? sleep;
    this.#throttle = options.throttle ?? (async () => undefined);
    this.#dispatcher = new Agent({
      connections: 32,
      headersTimeout: HTTP_SILENCE_MS_MAX,
      bodyTimeout: HTTP_SILENCE_MS_MAX,
      connect: { timeout: 10_000 },
    });
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  /** One blob, if no blob has this name. */
  async create(url: string, body: BlobBody, options: PutBlobOptions): Promise<PutOutcome> {
    const headers: Record<string, string> = {
      'x-ms-blob-type': 'BlockBlob',
      'if-none-match': '*',
      'x-ms-blob-content-type': options.contentType,
      'content-type': options.contentType,
      'x-ms-access-tier': options.tier.charAt(0).toUpperCase() + options.tier.slice(1),
    };
    for (const [key, value] of Object.entries(options.metadata)) {
      headers[`x-ms-meta-${key}`] = value;
    }
    const reply = await this.#put(url, body, headers);
    if (reply === 'unknown') {
      return 'unknown';
    }
    if (reply.status === 201) {
      return 'created';
    }
    if (reply.status === 403 && SIGNATURE_REFUSED.has(reply.errorCode)) {
      return 'refused';
    }
    if (reply.status === 403 || reply.status === 409 || reply.status === 412) {
      return 'conflict';
    }
    throw storageFailed('A blob could not be created', reply);
  }

  /** One block of a staging blob; repeating it is harmless. */
  async stageBlock(url: string, blockId: string, body: BlobBody): Promise<'staged' | 'refused'> {
    const target = withQuery(url, { comp: 'block', blockid: blockId });
    return this.#stage(target, body, {});
  }

  async commitBlockList(url: string, blockIds: readonly string[]): Promise<'staged' | 'refused'> {
    const text = `<?xml version="1.0" encoding="utf-8"?><BlockList>${blockIds
      .map((id) => `<Latest>${id}</Latest>`)
      .join('')}</BlockList>`;
    return this.#stage(withQuery(url, { comp: 'blocklist' }), bodyOf(Buffer.from(text)), {
      'content-type': 'application/xml',
    });
  }

  /** The body of a blob, as it arrives. Fails with BlobMissingError, BlobArchivedError or an AriusError. */
  async read(url: string): Promise<AsyncIterable<Uint8Array>> {
    for (let attempt = 1; ; attempt++) {
      this.counts['blob-read']++;
      let failure: unknown;
      let retryAfterSeconds: number | undefined;
      try {
        const response = await request(url, { method: 'GET', dispatcher: this.#dispatcher, signal: this.#signal });
        if (response.statusCode === 200) {
          return this.#counted(response.body);
        }
        const reply = replyOf(response);
        await response.body.dump();
        throwKnownReadFailure(reply);
        failure = storageFailed('A blob could not be read', reply);
        retryAfterSeconds = reply.retryAfterSeconds;
        if (!isTransient(reply)) {
          throw failure;
        }
      } catch (error) {
        this.#signal.throwIfAborted();
        if (error instanceof BlobMissingError || error instanceof BlobArchivedError || error instanceof AriusError) {
          throw error;
        }
        failure = error;
      }
      if (attempt >= HTTP_ATTEMPTS_MAX) {
        throw failure instanceof AriusError ? failure : noAnswer(failure);
      }
      await this.#sleep(backoffMs(attempt, retryAfterSeconds), this.#signal);
    }
  }

  async #stage(url: string, body: BlobBody, headers: Record<string, string>): Promise<'staged' | 'refused'> {
    const reply = await this.#put(url, body, headers);
    if (reply === 'unknown') {
      throw noAnswer(undefined);
    }
    if (reply.status === 201) {
      return 'staged';
    }
    if (reply.status === 403) {
      return 'refused';
    }
    throw storageFailed('A block could not be staged', reply);
  }

  /** Repeats what may pass by itself. `unknown` when no attempt was answered at all, or not the last ones. */
  async #put(url: string, body: BlobBody, headers: Record<string, string>): Promise<Reply | 'unknown'> {
    for (let attempt = 1; ; attempt++) {
      this.counts['blob-write']++;
      let retryAfterSeconds: number | undefined;
      try {
        const response = await request(url, {
          method: 'PUT',
          dispatcher: this.#dispatcher,
          signal: this.#signal,
          headers: { ...headers, 'content-length': String(body.lengthBytes), 'content-md5': body.md5 },
          body: body.lengthBytes === 0 ? Buffer.alloc(0) : Readable.from(this.#sent(body)),
        });
        const reply = replyOf(response);
        await response.body.dump();
        if (!isTransient(reply) || attempt >= HTTP_ATTEMPTS_MAX) {
          return reply;
        }
        retryAfterSeconds = reply.retryAfterSeconds;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (error instanceof AriusError) {
          throw error;
        }
        if (attempt >= HTTP_ATTEMPTS_MAX) {
          return 'unknown';
        }
      }
      await this.#sleep(backoffMs(attempt, retryAfterSeconds), this.#signal);
    }
  }

  async *#sent(body: BlobBody): AsyncGenerator<Uint8Array, void, void> {
    for await (const bytes of body.open()) {
      await this.#throttle(bytes);
      this.bytesSent += bytes.byteLength;
      yield bytes;
    }
  }

  async *#counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const bytes of body) {
      this.bytesDownloaded += bytes.byteLength;
      yield bytes;
    }
  }
}

/** A small body that is in memory. */
export function bodyOf(bytes: Uint8Array): BlobBody {
  return {
    lengthBytes: bytes.byteLength,
    md5: createHash('md5').update(bytes).digest('base64'),
    async *open() {
      yield bytes;
    },
  };
}

function replyOf(response: Dispatcher.ResponseData): Reply {
  const header = response.headers['x-ms-error-code'];
  const retryAfter = Number(response.headers['retry-after']);
  return {
    status: response.statusCode,
    errorCode: typeof header === 'string' ? header : '',
    retryAfterSeconds: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
  };
}

function throwKnownReadFailure(reply: Reply): void {
  if (reply.status === 404) {
    throw new BlobMissingError('no such blob');
  }
  if (reply.status === 409 && reply.errorCode === 'BlobArchived') {
    throw new BlobArchivedError('the blob is in the archive tier');
  }
}

function isTransient(reply: Reply): boolean {
  // A body damaged on its way is as passing a trouble as a busy server.
  return reply.status === 408 || reply.status === 429 || reply.status >= 500 || reply.errorCode === 'Md5Mismatch';
}

function storageFailed(what: string, reply: Reply): AriusError {
  const detail = `${what}: HTTP ${reply.status}${reply.errorCode === '' ? '' : ` ${reply.errorCode}`}.`;
  return new AriusError('storage-failed', detail, 'Run the same command again; it continues where it stopped.');
}

function noAnswer(cause: unknown): AriusError {
  const detail = `The storage did not answer${cause === undefined ? '' : `: ${reasonOf(cause)}`}.`;
  return new AriusError('storage-failed', detail, 'Check the network, then run the same command again.', { cause });
}

function withQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const target = new URL(url);
  for (const [name, value] of Object.entries(parameters)) {
    target.searchParams.set(name, value);
  }
  return target.href;
}
