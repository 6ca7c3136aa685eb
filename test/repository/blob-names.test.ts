import { describe, expect, it } from 'vitest';
import { parseChunkHash, parseFileTreeHash } from '../../src/hashing/hashes.ts';
import {
  type BlobKind,
  chunkBlobName,
  contentTypeOf,
  filetreeBlobName,
  shardBlobName,
  sidecarBlobName,
  snapshotBlobName,
} from '../../src/repository/blob-names.ts';

const HASH = 'ab'.repeat(32);

describe('blob names', () => {
  it('are prefix, slash, leaf', () => {
    expect(chunkBlobName(parseChunkHash(HASH))).toBe(`chunks/${HASH}`);
    expect(sidecarBlobName(parseChunkHash(HASH))).toBe(`chunks-v5legacy-metadata/${HASH}`);
    expect(filetreeBlobName(parseFileTreeHash(HASH))).toBe(`filetrees/${HASH}`);
    expect(snapshotBlobName('2026-03-22T150000.000Z')).toBe('snapshots/2026-03-22T150000.000Z');
    expect(shardBlobName('a0f')).toBe('chunk-index/a0f');
  });
});

describe('content types', () => {
  it.each<[BlobKind, string, string]>([
    ['large', 'application/aes256gcm+zstd', 'application/zstd'],
    ['tar', 'application/aes256gcm+tar+zstd', 'application/tar+zstd'],
    ['thin', 'text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
    ['filetree', 'application/aes256gcm+zstd', 'application/zstd'],
    ['snapshot', 'application/aes256gcm+zstd', 'application/zstd'],
    ['shard', 'application/aes256gcm+zstd', 'application/zstd'],
  ])('CS-14, CS-15: of a %s are exactly the format’s', (kind, sealed, plain) => {
    expect(contentTypeOf(kind, true)).toBe(sealed);
    expect(contentTypeOf(kind, false)).toBe(plain);
  });
});
