import { constants, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BodyCorruptError } from '../../src/codec/errors.ts';
import { walkWholeFrame, ZstdFrameWalker } from '../../src/codec/zstd-frame.ts';
import { generated } from '../support/bytes.ts';

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const CHECKSUM = [1, 2, 3, 4];
const NO_LIMIT = Number.POSITIVE_INFINITY;

/** A frame by hand: the walk reads structure only, so content and checksum may be anything. */
function frame(parts: { descriptor?: number; header?: number[]; blocks?: number[][]; checksum?: number[] }): Buffer {
  const { descriptor = 0x04, header = [0x60], blocks = [rawBlock(3, true)], checksum = CHECKSUM } = parts;
  return Buffer.from([...MAGIC, descriptor, ...header, ...blocks.flat(), ...checksum]);
}

function blockHeader(type: number, size: number, last: boolean): number[] {
  const value = (size << 3) | (type << 1) | (last ? 1 : 0);
  return [value & 0xff, (value >> 8) & 0xff, value >>> 16];
}

function rawBlock(size: number, last: boolean): number[] {
  return [...blockHeader(0, size, last), ...new Array<number>(size).fill(7)];
}

function rleBlock(size: number, last: boolean): number[] {
  return [...blockHeader(1, size, last), 7];
}

describe('ZstdFrameWalker', () => {
  const real = zstdCompressSync(generated('walk', 300_000), { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

  it('finds the end of a real frame wherever the pieces are cut', () => {
    const followed = Buffer.concat([real, Buffer.from('more')]);
    for (const pieceBytes of [1, 2, 3, 7, 1000, followed.length]) {
      const walker = new ZstdFrameWalker(NO_LIMIT);
      let taken = 0;
      for (let offset = 0; offset < followed.length; offset += pieceBytes) {
        taken += walker.push(followed.subarray(offset, offset + pieceBytes));
      }
      expect(walker.complete).toBe(true);
      expect(taken).toBe(real.length);
    }
  });

  it('AR-57: a frame cut at any length is not complete', () => {
    const small = zstdCompressSync(generated('walk', 2000), { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
    for (let length = 0; length < small.length; length += 1) {
      expect(() => walkWholeFrame(small.subarray(0, length), NO_LIMIT)).toThrow(BodyCorruptError);
    }
    expect(() => walkWholeFrame(small, NO_LIMIT)).not.toThrow();
  });

  it.each([
    ['no window, one byte of content size', { descriptor: 0x24, header: [3] }],
    ['content size of 2 bytes', { descriptor: 0x44, header: [0x60, 0, 0] }],
    ['content size of 4 bytes', { descriptor: 0x84, header: [0x60, 3, 0, 0, 0] }],
    ['content size of 8 bytes', { descriptor: 0xc4, header: [0x60, 3, 0, 0, 0, 0, 0, 0, 0] }],
    [
      'several blocks of all kinds',
      { blocks: [rawBlock(0, false), rleBlock(100, false), [...blockHeader(2, 4, true), 1, 2, 3, 4]] },
    ],
    ['an empty last block', { blocks: [rawBlock(3, false), rawBlock(0, true)] }],
  ])('takes a frame with %s', (_, parts) => {
    expect(() => walkWholeFrame(frame(parts), NO_LIMIT)).not.toThrow();
    expect(() => walkWholeFrame(frame(parts).subarray(0, -1), NO_LIMIT)).toThrow(/truncated/);
    expect(() => walkWholeFrame(Buffer.concat([frame(parts), Buffer.alloc(1)]), NO_LIMIT)).toThrow(/follow/);
  });

  it.each([
    ['without a checksum', { descriptor: 0x00, checksum: [] }],
    ['with the reserved bit', { descriptor: 0x0c }],
    ['with a dictionary', { descriptor: 0x05, header: [0x60, 1] }],
    ['with a reserved block type', { blocks: [blockHeader(3, 0, true)] }],
    ['with a raw block above 128 KiB', { blocks: [rawBlock(131_073, true)] }],
    ['with a repeated byte above 128 KiB', { blocks: [rleBlock(131_073, true)] }],
    ['with a window above 128 MiB', { header: [0x89] }],
  ])('refuses a frame %s', (_, parts) => {
    expect(() => walkWholeFrame(frame(parts), NO_LIMIT)).toThrow(BodyCorruptError);
  });

  it('takes a window of exactly 128 MiB', () => {
    expect(() => walkWholeFrame(frame({ header: [0x88] }), NO_LIMIT)).not.toThrow();
  });

  it('refuses anything that does not begin with the magic, a skippable frame included', () => {
    for (const start of [
      [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0],
      [0x28, 0xb5, 0x2f, 0xfe, 0],
      [0x27, 0xb5, 0x2f, 0xfd, 4],
    ]) {
      expect(() => walkWholeFrame(Buffer.from(start), NO_LIMIT)).toThrow(/not a zstd frame/);
    }
  });

  it('refuses what must decode to more than the limit, as soon as that is known', () => {
    expect(() => walkWholeFrame(frame({ blocks: [rawBlock(100, true)] }), 100)).not.toThrow();
    expect(() => walkWholeFrame(frame({ blocks: [rawBlock(100, true)] }), 99)).toThrow(/more than the 99 bytes/);
    expect(() => walkWholeFrame(frame({ blocks: [rleBlock(60, false), rleBlock(60, true)] }), 100)).toThrow(
      /100 bytes/,
    );
    // Declared in the header: not a single block has been seen.
    const declared = frame({ descriptor: 0x84, header: [0x60, 0, 0, 0, 1] }).subarray(0, 10);
    expect(() => new ZstdFrameWalker(1000).push(declared)).toThrow(/1000 bytes/);
  });

  it('bounds what a decoder can make of the blocks', () => {
    const blocks = [rawBlock(10, false), rleBlock(1000, false), [...blockHeader(2, 2, true), 1, 2]];
    expect(walkWholeFrame(frame({ blocks }), NO_LIMIT).decodedBytesBound).toBe(10 + 1000 + 131_072);
  });
});
