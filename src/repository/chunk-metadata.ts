import { AriusError } from '../errors.ts';
import { type ChunkHash, isHashText, parseChunkHash } from '../hashing/hashes.ts';
import type { Metadata } from '../storage/ports.ts';

/**
 * The metadata of a blob under `chunks/`. Its `arius_type` is the commit marker: a blob without it is not a chunk.
 * Sizes are bytes; `chunkSize` is the stored size, for a thin chunk that of its tar.
 */
export type ChunkMetadata =
  | { readonly type: 'large'; readonly originalSize: number; readonly chunkSize: number }
  | { readonly type: 'tar'; readonly chunkSize: number }
  | {
      readonly type: 'thin';
      readonly parentChunkHash: ChunkHash;
      readonly originalSize: number;
      readonly chunkSize: number;
    };

const TYPE = 'arius_type';
const CHUNK_SIZE = 'chunk_size';
const ORIGINAL_SIZE = 'original_size';
const PARENT = 'parent_chunk_hash';

export function formatChunkMetadata(metadata: ChunkMetadata): Metadata {
  const { type, chunkSize } = metadata;
  const common = { [TYPE]: type, [CHUNK_SIZE]: formatSize(chunkSize) };
  switch (metadata.type) {
    case 'tar':
      return common;
    case 'large':
      return { ...common, [ORIGINAL_SIZE]: formatSize(metadata.originalSize) };
    case 'thin':
      return { ...common, [ORIGINAL_SIZE]: formatSize(metadata.originalSize), [PARENT]: metadata.parentChunkHash };
  }
}

/**
 * `uncommitted`: no `arius_type`. `unknown`: a type of another version, to be left alone. A missing `chunk_size` is the
 * length of the body.
 * @throws AriusError `blob-corrupt` when a committed chunk's values cannot be read
 */
export function parseChunkMetadata(
  metadata: Metadata | undefined,
  contentLengthBytes: number,
): ChunkMetadata | 'uncommitted' | 'unknown' {
  const type = metadata?.[TYPE];
  if (metadata === undefined || type === undefined) {
    return 'uncommitted';
  }
  if (type !== 'large' && type !== 'tar' && type !== 'thin') {
    return 'unknown';
  }
  const chunkSize = metadata[CHUNK_SIZE] === undefined ? contentLengthBytes : parseSize(metadata, CHUNK_SIZE);
  switch (type) {
    case 'tar':
      return { type, chunkSize };
    case 'large':
      return { type, chunkSize, originalSize: parseSize(metadata, ORIGINAL_SIZE) };
    case 'thin':
      return {
        type,
        chunkSize,
        originalSize: parseSize(metadata, ORIGINAL_SIZE),
        parentChunkHash: parseParent(metadata),
      };
  }
}

function formatSize(size: number): string {
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new RangeError(`Not a size in bytes: ${size}`);
  }
  return String(size);
}

function parseSize(metadata: Metadata, key: string): number {
  const text = metadata[key] ?? '';
  const size = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(size)) {
    throw unreadable(key, metadata[key]);
  }
  return size;
}

function parseParent(metadata: Metadata): ChunkHash {
  const text = metadata[PARENT] ?? '';
  if (!isHashText(text)) {
    throw unreadable(PARENT, metadata[PARENT]);
  }
  return parseChunkHash(text);
}

function unreadable(key: string, value: string | undefined): AriusError {
  const found = value === undefined ? 'is missing' : `is ${JSON.stringify(value.slice(0, 80))}`;
  return new AriusError(
    'blob-corrupt',
    `The metadata of a committed chunk cannot be read: ${key} ${found}`,
    'Restore the metadata of this chunk, or remove the chunk and archive its files again.',
  );
}
