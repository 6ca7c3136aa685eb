import { crc32, createInflateRaw } from 'node:zlib';
import type { ByteReader } from './byte-reader.ts';
import { BodyCorruptError } from './errors.ts';
import { through } from './through.ts';

/**
 * The legacy gzip body (RFC 1952), read only and strictly: one member, complete, its checksum and size hold, nothing
 * behind it. Node's gunzip is not used because it overlooks what follows a member.
 */

export const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const FIXED_HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
const DEFLATE = 8;
const FLAG_HEADER_CRC = 2;
const FLAG_EXTRA = 4;
const FLAG_NAME = 8;
const FLAG_COMMENT = 16;
const RESERVED_FLAGS = 0xe0;
const NAME_OR_COMMENT_BYTES_MAX = 65_536;

export async function* gunzipStream(body: ByteReader, decodedBytesMax: number): AsyncGenerator<Uint8Array> {
  await skipHeader(body);
  const deflated = new DeflatedPart(body);
  const inflate = createInflateRaw();
  let crc = 0;
  let decodedBytes = 0;
  for await (const piece of through(deflated.pieces(), inflate)) {
    crc = crc32(piece, crc);
    decodedBytes += piece.length;
    if (decodedBytes > decodedBytesMax) {
      throw new BodyCorruptError(`The body decodes to more than the ${decodedBytesMax} bytes allowed`);
    }
    yield piece;
  }
  const { trailer } = deflated;
  if (trailer.length !== TRAILER_BYTES || inflate.bytesWritten !== deflated.byteCount) {
    throw new BodyCorruptError('The gzip body is truncated, or bytes follow it');
  }
  if (trailer.readUInt32LE(0) !== crc || trailer.readUInt32LE(4) !== decodedBytes % 2 ** 32) {
    throw new BodyCorruptError('The checksum of the gzip body does not hold');
  }
}

/** Everything of the body but its last eight bytes, which must be the trailer because nothing may follow it. */
class DeflatedPart {
  readonly #body: ByteReader;
  #held: Buffer = Buffer.alloc(0);
  #byteCount = 0;

  constructor(body: ByteReader) {
    this.#body = body;
  }

  /** To be read when the pieces have ended. */
  get trailer(): Buffer {
    return this.#held;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of this.#body.rest()) {
      const joined = Buffer.concat([this.#held, piece]);
      const passed = joined.subarray(0, Math.max(0, joined.length - TRAILER_BYTES));
      this.#held = Buffer.from(joined.subarray(passed.length));
      this.#byteCount += passed.length;
      yield passed;
    }
  }
}

async function skipHeader(body: ByteReader): Promise<void> {
  const header = await take(body, FIXED_HEADER_BYTES);
  const flags = header.readUInt8(3);
  if (header.readUInt8(2) !== DEFLATE || (flags & RESERVED_FLAGS) !== 0) {
    throw new BodyCorruptError('The header of the gzip body is damaged');
  }
  if ((flags & FLAG_EXTRA) !== 0) {
    await take(body, (await take(body, 2)).readUInt16LE(0));
  }
  if ((flags & FLAG_NAME) !== 0) {
    await skipText(body);
  }
  if ((flags & FLAG_COMMENT) !== 0) {
    await skipText(body);
  }
  if ((flags & FLAG_HEADER_CRC) !== 0) {
    await take(body, 2);
  }
}

async function take(body: ByteReader, byteCount: number): Promise<Buffer> {
  const bytes = await body.read(byteCount);
  if (bytes.length < byteCount) {
    throw new BodyCorruptError('The gzip body ends within its header');
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function skipText(body: ByteReader): Promise<void> {
  for (let length = 0; length < NAME_OR_COMMENT_BYTES_MAX; length += 1) {
    if ((await take(body, 1)).readUInt8(0) === 0) {
      return;
    }
  }
  throw new BodyCorruptError('The header of the gzip body does not end');
}
