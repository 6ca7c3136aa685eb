import { constants, createZstdCompress, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyCorruptError } from '../../src/codec/errors.ts';
import { collect } from '../../src/codec/zstd-buffer.ts';
import { walkWholeFrame } from '../../src/codec/zstd-frame.ts';
import { compressStream, decompressStream, firstFrame } from '../../src/codec/zstd-stream.ts';
import { collected, generated, inPieces } from '../support/bytes.ts';

const CHECKSUM = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
const EMPTY_FRAME = zstdCompressSync(Buffer.alloc(0), CHECKSUM);
const NODE_OUTPUT_BYTES = 16_384;
const BLOCK_BYTES = 131_072;

/** The encoder as anyone would use it: everything written at once, then `end`. */
function nodeEncoded(writes: readonly Uint8Array[]): Promise<Uint8Array> {
  const encoder = createZstdCompress(CHECKSUM);
  for (const bytes of writes) {
    encoder.write(bytes);
  }
  encoder.end();
  return collect(encoder);
}

/** Incompressible input for a streamed frame of this size: 6 bytes of header, 3 per block, 4 of checksum around it. */
function inputForFrameOf(frameBytes: number): Buffer {
  const blocks = Math.ceil(frameBytes / BLOCK_BYTES);
  return generated('exact', frameBytes - 6 - 3 * blocks - 4);
}

describe('compressStream', () => {
  it("needs to: Node's encoder appends a second, empty frame (should this fail, the cut has become needless)", async () => {
    const queued = await nodeEncoded([generated('queued', 7000), generated('queued', 7000)]);
    const exact = await nodeEncoded([inputForFrameOf(NODE_OUTPUT_BYTES)]);
    for (const frames of [queued, exact]) {
      expect(() => walkWholeFrame(frames, Number.POSITIVE_INFINITY)).toThrow(/Bytes follow/);
      const first = await collected(firstFrame(inPieces(frames)));
      expect(() => walkWholeFrame(first, Number.POSITIVE_INFINITY)).not.toThrow();
    }
    expect(exact.length).toBe(NODE_OUTPUT_BYTES + EMPTY_FRAME.length);
  });

  it("writes one frame even where Node's encoder writes two: end() with writes queued", async () => {
    const writes = Array.from({ length: 50 }, (_, index) => generated(`queued ${index}`, 70_000));
    const bare = await nodeEncoded(writes);
    const cut = await collected(firstFrame(inPieces(bare, 1000)));
    expect(() => walkWholeFrame(cut, Number.POSITIVE_INFINITY)).not.toThrow();
    expect(Buffer.compare(await collected(decompressStream(inPieces(cut), 1e9)), Buffer.concat(writes))).toBe(0);
    // The same content through our own path.
    const ours = await collected(compressStream(inPieces(Buffer.concat(writes), 70_000), 3));
    expect(() => walkWholeFrame(ours, Number.POSITIVE_INFINITY)).not.toThrow();
  });

  it.each([-2, -1, 0, 1, 2])("writes one frame when it fills Node's output buffer, %i bytes off", async (off) => {
    for (const outputs of [1, 2, 8]) {
      const input = inputForFrameOf(outputs * NODE_OUTPUT_BYTES + off);
      for (const pieceBytes of [1000, 16_384, input.length]) {
        const frame = await collected(compressStream(inPieces(input, pieceBytes), 1));
        expect(() => walkWholeFrame(frame, Number.POSITIVE_INFINITY)).not.toThrow();
        expect(Buffer.compare(await collected(decompressStream(inPieces(frame), input.length)), input)).toBe(0);
      }
    }
  });

  it('passes the first frame on and drops an empty one behind it, wherever the pieces are cut', async () => {
    const frame = zstdCompressSync(generated('first', 500), CHECKSUM);
    for (const extra of [Buffer.alloc(0), EMPTY_FRAME, Buffer.concat([EMPTY_FRAME, EMPTY_FRAME])]) {
      for (const pieceBytes of [1, 5, 1000]) {
        const cut = await collected(firstFrame(inPieces(Buffer.concat([frame, extra]), pieceBytes)));
        expect(Buffer.compare(cut, frame)).toBe(0);
      }
    }
  });

  it('fails rather than drop a second frame with content, or take half a frame', async () => {
    const frame = zstdCompressSync(generated('first', 500), CHECKSUM);
    for (const bytes of [
      Buffer.concat([frame, zstdCompressSync(Buffer.from('x'), CHECKSUM)]),
      Buffer.concat([frame, EMPTY_FRAME.subarray(0, -1)]),
      Buffer.concat([frame, Buffer.from('junk')]),
      frame.subarray(0, -1),
    ]) {
      await expect(collected(firstFrame(inPieces(bytes, 100)))).rejects.toThrow();
    }
  });

  it('carries the checksum flag and gives back any content, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 3000 })), async (pieces) => {
        async function* source(): AsyncGenerator<Uint8Array> {
          yield* pieces;
        }
        const frame = await collected(compressStream(source(), 1));
        expect((frame[4] ?? 0) & 4).toBe(4);
        const whole = Buffer.concat(pieces);
        expect(Buffer.compare(await collected(decompressStream(inPieces(frame, 100), whole.length)), whole)).toBe(0);
      }),
      { numRuns: 50 },
    );
  });
});

describe('decompressStream', () => {
  it('counts what comes out against the limit', async () => {
    const frame = zstdCompressSync(Buffer.alloc(1_000_000), CHECKSUM);
    expect((await collected(decompressStream(inPieces(frame), 1_000_000))).length).toBe(1_000_000);
    await expect(collected(decompressStream(inPieces(frame), 999_999))).rejects.toThrow(/999999 bytes allowed/);
  });

  it('stops a bomb after the limit, not after the bomb', async () => {
    const bomb = await collected(compressStream(zeros(256), 1));
    let decoded = 0;
    const decode = async (): Promise<void> => {
      for await (const piece of decompressStream(inPieces(bomb, 1000), 1_000_000)) {
        decoded += piece.length;
      }
    };
    await expect(decode()).rejects.toBeInstanceOf(BodyCorruptError);
    expect(decoded).toBeLessThanOrEqual(1_000_000);
  });

  it('takes an empty frame for empty content, and nothing at all for an error', async () => {
    expect((await collected(decompressStream(inPieces(EMPTY_FRAME), 0))).length).toBe(0);
    await expect(collected(decompressStream(inPieces(Buffer.alloc(0)), 0))).rejects.toThrow(/truncated/);
  });
});

async function* zeros(mebibytes: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < mebibytes; index += 1) {
    yield new Uint8Array(1024 * 1024);
  }
}
