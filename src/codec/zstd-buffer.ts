import { createRequire } from 'node:module';
import createXxhash from 'xxhash-wasm';
import { ZSTD_BLOCK_BYTES_MAX } from '../limits.ts';
import { BodyCorruptError } from './errors.ts';
import { walkWholeFrame } from './zstd-frame.ts';
import { decompressStream } from './zstd-stream.ts';

/**
 * zstd over whole buffers. The library's own wrapper ignores the level and its frames carry no checksum, so its bindings
 * are called and the frame is completed here: the checksum flag in the descriptor, and the low four bytes of the
 * content's XXH64 at the end.
 */

interface ZstdBindings {
  compress(data: Buffer, level: number): Promise<Buffer>;
  decompress(data: Buffer): Promise<Buffer>;
}

const bindings = createRequire(import.meta.url)('@mongodb-js/zstd/bindings.js') as ZstdBindings;
const xxhash = createXxhash();
const DESCRIPTOR_OFFSET = 4;
const CHECKSUM_FLAG = 0x04;
const CHECKSUM_BYTES = 4;
/** XXH64 copies what it is given into its own memory, which never shrinks. */
const HASHED_PIECE_BYTES = 64 * 1024;

export async function compressBuffer(plain: Uint8Array, level: number): Promise<Uint8Array> {
  const bare = await bindings.compress(asBuffer(plain), level);
  const frame = Buffer.allocUnsafe(bare.length + CHECKSUM_BYTES);
  frame.set(bare, 0);
  frame.writeUInt8(frame.readUInt8(DESCRIPTOR_OFFSET) | CHECKSUM_FLAG, DESCRIPTOR_OFFSET);
  frame.writeUInt32LE(await checksumOf(plain), bare.length);
  walkWholeFrame(frame, Number.POSITIVE_INFINITY);
  return frame;
}

/** The frame is walked in full before it is decoded. */
export async function decompressBuffer(frame: Uint8Array, decodedBytesMax: number): Promise<Uint8Array> {
  const { decodedBytesBound } = walkWholeFrame(frame, decodedBytesMax);
  // The bindings know no limit. They are used when the blocks cannot decode to more than the limit, rounded up to a
  // block; a frame of many small blocks might be within it and might not: that one is decoded while counting.
  if (decodedBytesBound >= decodedBytesMax + ZSTD_BLOCK_BYTES_MAX) {
    return collect(decompressStream(once(frame), decodedBytesMax));
  }
  const plain = await decompressWithBindings(frame);
  if (plain.length > decodedBytesMax) {
    throw new BodyCorruptError(`The body decodes to more than the ${decodedBytesMax} bytes allowed`);
  }
  return plain;
}

export async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const held: Uint8Array[] = [];
  for await (const piece of pieces) {
    held.push(piece);
  }
  return Buffer.concat(held);
}

async function decompressWithBindings(frame: Uint8Array): Promise<Uint8Array> {
  try {
    return await bindings.decompress(asBuffer(frame));
  } catch (cause) {
    throw new BodyCorruptError('The compressed body is damaged', { cause });
  }
}

async function checksumOf(content: Uint8Array): Promise<number> {
  const hash = (await xxhash).create64();
  for (let offset = 0; offset < content.length; offset += HASHED_PIECE_BYTES) {
    hash.update(content.subarray(offset, offset + HASHED_PIECE_BYTES));
  }
  return Number(hash.digest() & 0xffff_ffffn);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
