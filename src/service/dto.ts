/** Between the entries of the index and those of the HTTP contract. */

import type { ShardEntryDto } from '../contract/schemas.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';

export function dtoOf(entry: ShardEntry): ShardEntryDto {
  return {
    contentHash: entry.contentHash,
    chunkHash: entry.chunkHash,
    originalSize: entry.originalSize,
    chunkSize: entry.chunkSize,
    tier: entry.tier,
  };
}
