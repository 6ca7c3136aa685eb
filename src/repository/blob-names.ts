import type { ChunkHash, ContentHash, FileTreeHash } from '../hashing/hashes.ts';

/** Where things are in a repository's container, and what they are labelled as. Names are `prefix/leaf`, one slash. */

export const CHUNKS_PREFIX = 'chunks/';
export const FILETREES_PREFIX = 'filetrees/';
export const SNAPSHOTS_PREFIX = 'snapshots/';
export const CHUNK_INDEX_PREFIX = 'chunk-index/';
/** Metadata of migrated chunks that could not be given any of their own. */
const SIDECARS_PREFIX = 'chunks-v5legacy-metadata/';

export function chunkBlobName(hash: ChunkHash | ContentHash): string {
  return CHUNKS_PREFIX + hash;
}

export function filetreeBlobName(hash: FileTreeHash): string {
  return FILETREES_PREFIX + hash;
}

/** @param name the leaf, e.g. `2026-03-22T150000.000Z` */
export function snapshotBlobName(name: string): string {
  return SNAPSHOTS_PREFIX + name;
}

export function sidecarBlobName(hash: ChunkHash | ContentHash): string {
  return SIDECARS_PREFIX + hash;
}

/** @param prefix the shard's hex prefix, at least two characters */
export function shardBlobName(prefix: string): string {
  return CHUNK_INDEX_PREFIX + prefix;
}

export type BlobKind = 'large' | 'tar' | 'thin' | 'filetree' | 'snapshot' | 'shard';

/** The exact strings of the format. Informational: no reader decides by them. */
export function contentTypeOf(kind: BlobKind, sealed: boolean): string {
  switch (kind) {
    case 'thin':
      return 'text/plain; charset=utf-8';
    case 'tar':
      return sealed ? 'application/aes256gcm+tar+zstd' : 'application/tar+zstd';
    default:
      return sealed ? 'application/aes256gcm+zstd' : 'application/zstd';
  }
}
