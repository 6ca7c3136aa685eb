import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AriusError } from '../../src/errors.ts';
import { parseChunkHash } from '../../src/hashing/hashes.ts';
import { type ChunkMetadata, formatChunkMetadata, parseChunkMetadata } from '../../src/repository/chunk-metadata.ts';
import { vectors } from '../support/bytes.ts';

const PARENT = parseChunkHash('cd'.repeat(32));
const size = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const anyMetadata: fc.Arbitrary<ChunkMetadata> = fc.oneof(
  fc.record({ type: fc.constant('large' as const), originalSize: size, chunkSize: size }),
  fc.record({ type: fc.constant('tar' as const), chunkSize: size }),
  fc.record({
    type: fc.constant('thin' as const),
    parentChunkHash: fc.constant(PARENT),
    originalSize: size,
    chunkSize: size,
  }),
);

describe('chunk metadata', () => {
  it('comes back as it was written', () => {
    fc.assert(
      fc.property(anyMetadata, (metadata) => {
        expect(parseChunkMetadata(formatChunkMetadata(metadata), 1)).toEqual(metadata);
      }),
    );
  });

  it('CS-13: a large chunk carries type, original size and stored size', () => {
    expect(formatChunkMetadata({ type: 'large', originalSize: 4_200_000, chunkSize: 17 })).toEqual({
      arius_type: 'large',
      original_size: '4200000',
      chunk_size: '17',
    });
  });

  it('CS-14 CS-24: tars and thin chunks carry exactly what the vectors say', () => {
    for (const { tarMetadata, thin, chunkSize } of vectors('tar-chunks.json').cases) {
      expect(formatChunkMetadata({ type: 'tar', chunkSize })).toEqual(tarMetadata);
      for (const { metadata } of thin) {
        const parsed = parseChunkMetadata(metadata, 0);
        expect(parsed).toMatchObject({ type: 'thin', parentChunkHash: metadata.parent_chunk_hash, chunkSize });
        expect(formatChunkMetadata(parsed as ChunkMetadata)).toEqual(metadata);
      }
    }
  });

  it('is uncommitted without a type, and unknown with one of another version', () => {
    expect(parseChunkMetadata(undefined, 5)).toBe('uncommitted');
    expect(parseChunkMetadata({ chunk_size: '1', original_size: '2' }, 5)).toBe('uncommitted');
    expect(parseChunkMetadata({ arius_type: 'huge' }, 5)).toBe('unknown');
    expect(parseChunkMetadata({ arius_type: '' }, 5)).toBe('unknown');
  });

  it('takes the length of the body for a missing stored size, and ignores keys of other tools', () => {
    expect(parseChunkMetadata({ arius_type: 'tar', v5_extra: 'x' }, 77)).toEqual({ type: 'tar', chunkSize: 77 });
    expect(parseChunkMetadata({ arius_type: 'large', original_size: '9' }, 77)).toEqual({
      type: 'large',
      originalSize: 9,
      chunkSize: 77,
    });
  });

  it.each([
    { arius_type: 'large', chunk_size: '1' },
    { arius_type: 'large', original_size: '', chunk_size: '1' },
    { arius_type: 'large', original_size: '-1', chunk_size: '1' },
    { arius_type: 'large', original_size: '1.5', chunk_size: '1' },
    { arius_type: 'large', original_size: '1e3', chunk_size: '1' },
    { arius_type: 'large', original_size: '9007199254740992', chunk_size: '1' },
    { arius_type: 'large', original_size: '1', chunk_size: 'many' },
    { arius_type: 'tar', chunk_size: '' },
    { arius_type: 'thin', original_size: '1', chunk_size: '1' },
    { arius_type: 'thin', original_size: '1', chunk_size: '1', parent_chunk_hash: 'short' },
    { arius_type: 'thin', chunk_size: '1', parent_chunk_hash: PARENT },
  ])('is corrupt, never a guess, when %j', (metadata) => {
    expect(() => parseChunkMetadata(metadata, 5)).toThrow(AriusError);
    expect(() => parseChunkMetadata(metadata, 5)).toThrow(expect.objectContaining({ code: 'blob-corrupt' }));
  });

  it.each([-1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1])('refuses to write %d as a size', (chunkSize) => {
    expect(() => formatChunkMetadata({ type: 'tar', chunkSize })).toThrow(RangeError);
  });
});
