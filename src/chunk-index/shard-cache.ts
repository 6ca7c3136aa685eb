/** Decoded shards of an instance, bounded by entries. A cached shard counts only at its ETag, so it can never be stale. */

import { LRUCache } from 'lru-cache';
import type { ShardEntry } from '../repository/shard-entry.ts';

export interface CachedShard {
  readonly etag: string;
  readonly entries: readonly ShardEntry[];
}

export class ShardCache {
  readonly #shards: LRUCache<string, CachedShard>;

  constructor(entriesMax: number) {
    this.#shards = new LRUCache({
      maxSize: entriesMax,
      // An empty shard still takes a place.
      sizeCalculation: (shard) => Math.max(1, shard.entries.length),
    });
  }

  get(prefix: string, etag: string): CachedShard | undefined {
    const shard = this.#shards.get(prefix);
    return shard?.etag === etag ? shard : undefined;
  }

  set(prefix: string, shard: CachedShard): void {
    this.#shards.set(prefix, shard);
  }

  delete(prefix: string): void {
    this.#shards.delete(prefix);
  }
}
