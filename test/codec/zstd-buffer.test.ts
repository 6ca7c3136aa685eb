import { createRequire } from 'node:module';
import { constants, createZstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BodyCorruptError } from '../../src/codec/errors.ts';
import { collect, compressBuffer, decompressBuffer } from '../../src/codec/zstd-buffer.ts';
import { generated, withFlippedBit } from '../support/bytes.ts';

const CHECKSUM = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
const bindings = createRequire(import.meta.url)('@mongodb-js/zstd/bindings.js');
const text = Buffer.from(Array.from({ length: 5000 }, (_, index) => `line ${index * 7919} of the text\n`).join(''));

describe('compressBuffer', () => {
  it.each([0, 1, 100, 65_536, 131_072, 131_073, 1_000_000])(
    'completes a frame of %i bytes that both decoders accept',
    async (length) => {
      for (const content of [generated('buffer', length), Buffer.alloc(length, 'abc')]) {
        const frame = Buffer.from(await compressBuffer(content, 3));
        expect(frame.readUInt8(4) & 4).toBe(4);
        expect(Buffer.compare(zstdDecompressSync(frame), content)).toBe(0);
        expect(Buffer.compare(await bindings.decompress(frame), content)).toBe(0);
        expect(Buffer.compare(await decompressBuffer(frame, length), content)).toBe(0);
      }
    },
  );

  it('writes the same checksum as zstd itself', async () => {
    const frame = Buffer.from(await compressBuffer(text, 3));
    expect(frame.subarray(-4)).toEqual(zstdCompressSync(text, CHECKSUM).subarray(-4));
  });

  it('carries a checksum that both decoders enforce', async () => {
    const frame = Buffer.from(await compressBuffer(text, 3));
    for (let bit = 0; bit < 32; bit += 1) {
      const wrong = withFlippedBit(frame, (frame.length - 4) * 8 + bit);
      expect(() => zstdDecompressSync(wrong)).toThrow();
      await expect(bindings.decompress(wrong)).rejects.toThrow();
    }
  });

  it('honours the level', async () => {
    const fast = await compressBuffer(text, 1);
    const small = await compressBuffer(text, 19);
    expect(small.length).toBeLessThan(fast.length);
    expect(small.length).not.toBe((await compressBuffer(text, 3)).length);
  });
});

describe('decompressBuffer', () => {
  it('holds the limit exactly', async () => {
    const frame = await compressBuffer(text, 1);
    expect((await decompressBuffer(frame, text.length)).length).toBe(text.length);
    await expect(decompressBuffer(frame, text.length - 1)).rejects.toBeInstanceOf(BodyCorruptError);
  });

  it('refuses a bomb by its blocks, before anything is decoded', async () => {
    const encoder = createZstdCompress(CHECKSUM);
    const bomb = collect(encoder);
    for (let mebibyte = 0; mebibyte < 64; mebibyte += 1) {
      encoder.write(Buffer.alloc(1024 * 1024));
    }
    encoder.end();
    const before = process.memoryUsage().rss;
    await expect(decompressBuffer(firstOf(await bomb), 100_000)).rejects.toBeInstanceOf(BodyCorruptError);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 1024 * 1024);
  });

  it('takes a frame of many small blocks that is within the limit, and refuses one that is not', async () => {
    const content = Buffer.alloc(2000, 'small blocks ');
    const frame = await flushedOften(content, 10);
    expect(Buffer.compare(await decompressBuffer(frame, content.length), content)).toBe(0);
    await expect(decompressBuffer(frame, content.length - 1)).rejects.toBeInstanceOf(BodyCorruptError);
  });
});

/** A frame with one block per flush, as a writer that flushes makes them. */
async function flushedOften(content: Buffer, blockBytes: number): Promise<Uint8Array> {
  const encoder = createZstdCompress(CHECKSUM);
  const frame = collect(encoder);
  for (let offset = 0; offset < content.length; offset += blockBytes) {
    encoder.write(content.subarray(offset, offset + blockBytes));
    await new Promise<void>((resolve) => encoder.flush(constants.ZSTD_e_flush, resolve));
  }
  encoder.end();
  return firstOf(await frame);
}

/** Without the empty frame that Node may append. */
function firstOf(frames: Uint8Array): Uint8Array {
  const second = Buffer.from(frames).indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 4);
  return second < 0 ? frames : frames.subarray(0, second);
}
