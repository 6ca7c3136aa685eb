/**
 * Shards as blobs: read through the cache, each downloaded once however many ask for it at the same time, and written
 * with a condition. A shard that does not decode completely is `chunk-index-corrupt`, never an empty or shorter one.
 */

import type { BodyCodec } from '../codec/body-codec.ts';
import { BodyCorruptError } from '../codec/errors.ts';
import { AriusError } from '../errors.ts';
import { SHARD_DECODED_BYTES_MAX } from '../limits.ts';
import { contentTypeOf, shardBlobName } from '../repository/blob-names.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { BlobContainer, DeleteResult, ReadBlob, WriteCondition, WriteResult } from '../storage/ports.ts';
import type { ShardRef } from './listing.ts';
import { parseShard, serializeShard } from './shard.ts';
import type { ShardCache } from './shard-cache.ts';
import { ShardFormatError } from './shard-line.ts';

export interface LoadedShard {
  /** What was read, which may be newer than what was asked for. */
  readonly etag: string;
  readonly entries: readonly ShardEntry[];
  /** 0 when it came from the cache. */
  readonly downloadedBytes: number;
}

export class ShardStore {
  readonly #container: BlobContainer;
  readonly #codec: BodyCodec;
  readonly #cache: ShardCache;
  readonly #loading = new Map<string, Promise<LoadedShard | undefined>>();

  constructor(container: BlobContainer, codec: BodyCodec, cache: ShardCache) {
    this.#container = container;
    this.#codec = codec;
    this.#cache = cache;
  }

  /** No download while the ETag is the cached one. Undefined: there is no such blob (any more). */
  async load(ref: ShardRef): Promise<LoadedShard | undefined> {
    const cached = this.#cache.get(ref.prefix, ref.etag);
    if (cached !== undefined) {
      return { ...cached, downloadedBytes: 0 };
    }
    // Shared only by those who ask for the same version: a later one must not be answered by an earlier download.
    const key = `${ref.prefix} ${ref.etag}`;
    const loading = this.#loading.get(key) ?? this.#download(ref.prefix).finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return await loading;
  }

  /** `through`: the container under the claim's signature. */
  async write(
    through: BlobContainer,
    prefix: string,
    entries: readonly ShardEntry[],
    condition: WriteCondition,
  ): Promise<{ result: WriteResult; bytes: number }> {
    const body = await this.#codec.encode(serializeShard(prefix, entries));
    const result = await through.write(shardBlobName(prefix), body, {
      condition,
      contentType: contentTypeOf('shard', this.#codec.sealed),
      tier: 'cool',
    });
    if (result.outcome === 'written') {
      this.#cache.set(prefix, { etag: result.etag, entries });
    }
    return { result, bytes: body.byteLength };
  }

  async delete(through: BlobContainer, ref: ShardRef): Promise<DeleteResult> {
    const result = await through.delete(shardBlobName(ref.prefix), { etag: ref.etag });
    if (result !== 'changed') {
      this.#cache.delete(ref.prefix);
    }
    return result;
  }

  async #download(prefix: string): Promise<LoadedShard | undefined> {
    const body = await this.#read(prefix);
    if (body === undefined) {
      return undefined;
    }
    const entries = await this.#decode(prefix, body.bytes);
    this.#cache.set(prefix, { etag: body.etag, entries });
    return { etag: body.etag, entries, downloadedBytes: body.bytes.byteLength };
  }

  async #read(prefix: string): Promise<ReadBlob | undefined> {
    try {
      return await this.#container.read(shardBlobName(prefix), SHARD_DECODED_BYTES_MAX);
    } catch (error) {
      throw error instanceof AriusError && error.code === 'blob-corrupt' ? corrupt(prefix, error) : error;
    }
  }

  async #decode(prefix: string, body: Uint8Array): Promise<ShardEntry[]> {
    try {
      return parseShard(prefix, await this.#codec.decode(body, SHARD_DECODED_BYTES_MAX));
    } catch (error) {
      throw error instanceof BodyCorruptError || error instanceof ShardFormatError ? corrupt(prefix, error) : error;
    }
  }
}

function corrupt(prefix: string, cause: Error): AriusError {
  return new AriusError(
    'chunk-index-corrupt',
    `The shard ${shardBlobName(prefix)} cannot be read, or the passphrase does not fit it: ${cause.message}`,
    'Repair the chunk index; the chunks themselves are not affected.',
    { cause },
  );
}
