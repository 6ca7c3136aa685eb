import { ZSTD_BLOCK_BYTES_MAX, ZSTD_WINDOW_BYTES_MAX } from '../limits.ts';
import { BodyCorruptError } from './errors.ts';

/**
 * Walks the headers of one zstd frame (RFC 8878, 3.1.1) as its bytes go by, without decoding it. The decoders at hand
 * take a truncated frame for a complete one and overlook what follows a frame; this walk does not. A frame is complete
 * when its last block and its checksum have been seen; the walker takes nothing beyond. The format demands the checksum
 * of every writer, so a frame without one is refused: in a plain repository nothing else would notice a flipped bit.
 */

export const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const CHECKSUM_FLAG = 0x04;
const RESERVED_BIT = 0x08;
const SINGLE_SEGMENT_FLAG = 0x20;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
const MAGIC_AND_DESCRIPTOR_BYTES = 5;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const RAW_BLOCK = 0;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;

type Part = 'descriptor' | 'header' | 'block-header' | 'block' | 'checksum' | 'done';

export class ZstdFrameWalker {
  readonly #decodedBytesMax: number;
  #part: Part = 'descriptor';
  /** Bytes of the current part still to come. */
  #missing = MAGIC_AND_DESCRIPTOR_BYTES;
  /** The current header's bytes so far; the bodies of blocks are passed over, not kept. */
  #header: number[] = [];
  #lastBlock = false;
  #certainBytes = 0;
  #possibleBytes = 0;

  constructor(decodedBytesMax: number) {
    this.#decodedBytesMax = decodedBytesMax;
  }

  get complete(): boolean {
    return this.#part === 'done';
  }

  /** No decoder can get more out of the blocks seen so far. */
  get decodedBytesBound(): number {
    return this.#possibleBytes;
  }

  /**
   * Walks on and returns how many of the bytes belong to the frame: all of them, or fewer when the frame ends within.
   * @throws BodyCorruptError when this cannot be a frame of the format, or would decode to more than is allowed.
   */
  push(bytes: Uint8Array): number {
    let offset = 0;
    while (offset < bytes.length && this.#part !== 'done') {
      const step = Math.min(this.#missing, bytes.length - offset);
      if (this.#part !== 'block' && this.#part !== 'checksum') {
        this.#header.push(...bytes.subarray(offset, offset + step));
      }
      offset += step;
      this.#missing -= step;
      while (this.#missing === 0 && !this.complete) {
        this.#next();
      }
    }
    return offset;
  }

  #next(): void {
    switch (this.#part) {
      case 'descriptor':
        this.#expect('header', headerBytesAfter(this.#header));
        break;
      case 'header':
        this.#readFrameHeader();
        this.#header = [];
        this.#expect('block-header', BLOCK_HEADER_BYTES);
        break;
      case 'block-header':
        this.#expect('block', this.#readBlockHeader());
        this.#header = [];
        break;
      case 'block':
        if (this.#lastBlock) {
          this.#expect('checksum', CHECKSUM_BYTES);
        } else {
          this.#expect('block-header', BLOCK_HEADER_BYTES);
        }
        break;
      default:
        this.#part = 'done';
    }
  }

  #expect(part: Part, byteCount: number): void {
    this.#part = part;
    this.#missing = byteCount;
  }

  #readFrameHeader(): void {
    const bytes = Buffer.from(this.#header);
    const descriptor = bytes[4] ?? 0;
    const singleSegment = (descriptor & SINGLE_SEGMENT_FLAG) !== 0;
    const contentSize = readContentSize(bytes, descriptor);
    const windowBytes = singleSegment ? (contentSize ?? 0) : windowBytesOf(bytes[MAGIC_AND_DESCRIPTOR_BYTES] ?? 0);
    if (windowBytes > ZSTD_WINDOW_BYTES_MAX) {
      throw new BodyCorruptError(`The compressed body asks for a window of ${windowBytes} bytes`);
    }
    if (contentSize !== undefined) {
      this.#requireWithinLimit(contentSize);
    }
  }

  /** Returns the size of the block's body. */
  #readBlockHeader(): number {
    const [low = 0, middle = 0, high = 0] = this.#header;
    const type = (low >> 1) & 3;
    const size = (low >> 3) | (middle << 5) | (high << 13);
    this.#lastBlock = (low & 1) === 1;
    if (type === RESERVED_BLOCK || size > ZSTD_BLOCK_BYTES_MAX) {
      throw new BodyCorruptError('The compressed body has a block that cannot be');
    }
    const certain = type === RAW_BLOCK || type === RLE_BLOCK;
    this.#certainBytes += certain ? size : 0;
    this.#possibleBytes += certain ? size : ZSTD_BLOCK_BYTES_MAX;
    this.#requireWithinLimit(this.#certainBytes);
    return type === RLE_BLOCK ? 1 : size;
  }

  #requireWithinLimit(decodedBytes: number): void {
    if (decodedBytes > this.#decodedBytesMax) {
      throw new BodyCorruptError(`The body decodes to more than the ${this.#decodedBytesMax} bytes allowed`);
    }
  }
}

/** Walks a frame that is all there: exactly one, complete, with nothing behind it. */
export function walkWholeFrame(frame: Uint8Array, decodedBytesMax: number): { decodedBytesBound: number } {
  const walker = new ZstdFrameWalker(decodedBytesMax);
  const frameBytes = walker.push(frame);
  if (!walker.complete) {
    throw new BodyCorruptError('The compressed body is truncated');
  }
  if (frameBytes !== frame.length) {
    throw new BodyCorruptError('Bytes follow the compressed body');
  }
  return { decodedBytesBound: walker.decodedBytesBound };
}

/** Checks magic and descriptor, and returns how many header bytes follow them. */
function headerBytesAfter(start: readonly number[]): number {
  if (ZSTD_MAGIC.some((byte, index) => byte !== start[index])) {
    throw new BodyCorruptError('The body is not a zstd frame');
  }
  const descriptor = start[4] ?? 0;
  if ((descriptor & RESERVED_BIT) !== 0 || DICTIONARY_ID_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3] !== 0) {
    throw new BodyCorruptError('The zstd frame uses a dictionary or a feature of the future');
  }
  if ((descriptor & CHECKSUM_FLAG) === 0) {
    throw new BodyCorruptError('The zstd frame carries no checksum');
  }
  const singleSegment = (descriptor & SINGLE_SEGMENT_FLAG) !== 0;
  return contentSizeBytes(descriptor) + (singleSegment ? 0 : 1);
}

function contentSizeBytes(descriptor: number): number {
  const code = (descriptor >> 6) as 0 | 1 | 2 | 3;
  return code === 0 && (descriptor & SINGLE_SEGMENT_FLAG) !== 0 ? 1 : CONTENT_SIZE_BYTES[code];
}

function readContentSize(header: Buffer, descriptor: number): number | undefined {
  const byteCount = contentSizeBytes(descriptor);
  const offset = header.length - byteCount;
  switch (byteCount) {
    case 0:
      return undefined;
    case 2:
      return header.readUInt16LE(offset) + 256;
    case 8:
      return Number(header.readBigUInt64LE(offset));
    default:
      return header.readUIntLE(offset, byteCount);
  }
}

function windowBytesOf(windowDescriptor: number): number {
  const base = 2 ** (10 + (windowDescriptor >> 3));
  return base + (base / 8) * (windowDescriptor & 7);
}
