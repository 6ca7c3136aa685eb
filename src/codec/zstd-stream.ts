import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { BodyCorruptError } from './errors.ts';
import { through } from './through.ts';
import { ZstdFrameWalker } from './zstd-frame.ts';

/**
 * zstd over streams, in the memory of one window. What is written is one frame with its checksum; what is read ends
 * normally only after exactly one complete frame whose checksum held.
 */

/** Walked a second time only to be sure that it is empty: a small limit is enough. */
const NOTHING_DECODED = 0;

export async function* compressStream(plain: AsyncIterable<Uint8Array>, level: number): AsyncGenerator<Uint8Array> {
  const encoder = createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
  });
  yield* firstFrame(through(plain, encoder));
}

/**
 * Node's encoder can append a second, empty frame. Only the first is passed on; the rest is walked, so that it is known
 * to hold nothing.
 */
export async function* firstFrame(frames: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const walker = new ZstdFrameWalker(Number.POSITIVE_INFINITY);
  let extra = new ZstdFrameWalker(NOTHING_DECODED);
  let extraBytes = 0;
  for await (const piece of frames) {
    const taken = walker.push(piece);
    if (taken > 0) {
      yield piece.subarray(0, taken);
    }
    for (let offset = taken; offset < piece.length; ) {
      extra = extra.complete ? new ZstdFrameWalker(NOTHING_DECODED) : extra;
      const step = extra.push(piece.subarray(offset));
      offset += step;
      extraBytes += step;
      requireEmpty(extra);
    }
  }
  if (!walker.complete || (extraBytes > 0 && !extra.complete)) {
    throw new Error('The zstd encoder ended within a frame');
  }
}

export async function* decompressStream(
  frame: AsyncIterable<Uint8Array>,
  decodedBytesMax: number,
): AsyncGenerator<Uint8Array> {
  let decodedBytes = 0;
  for await (const piece of through(walked(frame, decodedBytesMax), createZstdDecompress())) {
    decodedBytes += piece.length;
    if (decodedBytes > decodedBytesMax) {
      throw new BodyCorruptError(`The body decodes to more than the ${decodedBytesMax} bytes allowed`);
    }
    yield piece;
  }
}

/** Passes the frame on while walking it; the decoder never sees a byte that was not walked. */
async function* walked(frame: AsyncIterable<Uint8Array>, decodedBytesMax: number): AsyncGenerator<Uint8Array> {
  const walker = new ZstdFrameWalker(decodedBytesMax);
  for await (const piece of frame) {
    if (walker.push(piece) !== piece.length) {
      throw new BodyCorruptError('Bytes follow the compressed body');
    }
    yield piece;
  }
  if (!walker.complete) {
    throw new BodyCorruptError('The compressed body is truncated');
  }
}

function requireEmpty(extra: ZstdFrameWalker): void {
  if (extra.decodedBytesBound > 0) {
    throw new Error('The zstd encoder put content into a second frame');
  }
}
