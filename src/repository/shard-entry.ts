import type { ChunkHash, ContentHash } from '../hashing/hashes.ts';
import type { AccessTier } from '../storage/ports.ts';

/**
 * One line of the chunk index: where the content with this hash is stored.
 * A large chunk has `chunkHash === contentHash`; a small file's `chunkHash` names the tar that holds it.
 */
export interface ShardEntry {
  readonly contentHash: ContentHash;
  readonly chunkHash: ChunkHash;
  /** Size of the file, in bytes. */
  readonly originalSize: number;
  /** Stored size of the chunk blob, in bytes; for a small file that of its whole tar. */
  readonly chunkSize: number;
  /** The tier the chunk was uploaded to: a hint, never a promise. */
  readonly tier: AccessTier;
}

export function isLargeEntry(entry: ShardEntry): boolean {
  return (entry.chunkHash as string) === (entry.contentHash as string);
}
