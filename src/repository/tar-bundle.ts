import { ByteReader } from '../codec/byte-reader.ts';
import { type ContentHash, isHashText, parseContentHash } from '../hashing/hashes.ts';
import { PAX_HEADER_BYTES_MAX } from '../limits.ts';
import { formatTarHeader, parsePaxRecords, parseTarHeader, TAR_BLOCK_BYTES, tarCorrupt } from './tar-header.ts';

/**
 * Tar bundles: small files in one chunk, each entry named by its content hash and nothing else. The same members in the
 * same order give the same bytes, so that a repeated run builds the same tar and finds it stored.
 */

const END_BLOCKS_BYTES = 2 * TAR_BLOCK_BYTES;
const PIECE_BYTES = 65_536;

/**
 * Writes a bundle while it is being read: `add` waits until the reader has taken the member before. Nothing is kept but
 * the member in hand.
 */
export class TarBundleWriter {
  readonly stream: AsyncIterable<Uint8Array>;
  #dataBytes = 0;
  #memberCount = 0;
  #state: 'open' | 'finished' | 'abandoned' = 'open';
  #pieces: Uint8Array[] = [];
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor() {
    this.stream = this.#produce();
  }

  /** Bytes of file data added so far, tar framing not counted. */
  get dataBytes(): number {
    return this.#dataBytes;
  }

  get memberCount(): number {
    return this.#memberCount;
  }

  /** Resolves when the reader has taken the member. One call at a time. */
  async add(contentHash: ContentHash, bytes: Uint8Array): Promise<void> {
    this.#requireOpen();
    this.#dataBytes += bytes.length;
    this.#memberCount += 1;
    this.#pieces.push(formatTarHeader(contentHash, bytes.length), ...[bytes, padding(bytes.length)].filter(isNotEmpty));
    this.#wakeReader?.();
    await new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
    });
    // The reader gave up while the member was waiting; it must not count as written.
    if (this.#state === 'abandoned') {
      throw new Error('The tar bundle is no longer being read');
    }
  }

  /** For a caller whose reader failed, perhaps before it began: a waiting `add` fails instead of waiting for ever. */
  abandon(): void {
    this.#state = 'abandoned';
    this.#wakeWriter?.();
    this.#wakeReader?.();
  }

  /** Ends the stream with the two blocks that mark a complete tar. */
  finish(): void {
    this.#requireOpen();
    this.#pieces.push(Buffer.alloc(END_BLOCKS_BYTES));
    this.#state = 'finished';
    this.#wakeReader?.();
  }

  async *#produce(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const pieces = this.#pieces;
        this.#pieces = [];
        yield* pieces;
        this.#wakeWriter?.();
        if (this.#pieces.length > 0) {
          continue;
        }
        if (this.#state === 'abandoned') {
          throw new Error('The tar bundle was abandoned');
        }
        if (this.#state === 'finished') {
          return;
        }
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
    } finally {
      this.#state = this.#state === 'open' ? 'abandoned' : this.#state;
      this.#wakeWriter?.();
    }
  }

  #requireOpen(): void {
    if (this.#state !== 'open') {
      throw new Error(`The tar bundle is ${this.#state}`);
    }
  }
}

export interface TarMember {
  readonly contentHash: ContentHash;
  readonly sizeBytes: number;
  /** To be read before the next member is asked for; what is left of it then is skipped. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * The members in their order. Ends normally only after a complete tar whose source was read to its end, so that the
 * source's own checks have run too.
 * @throws AriusError `blob-corrupt`
 */
export async function* readTarBundle(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarMember> {
  const reader = new ByteReader(source);
  try {
    for (;;) {
      const entry = await readEntryHeader(reader);
      if (entry === undefined) {
        break;
      }
      const body = new MemberBody(reader, entry.sizeBytes);
      yield { ...entry, body: body.pieces() };
      await body.skipRest();
    }
    await requireOnlyZeros(reader);
  } finally {
    await reader.close();
  }
}

async function readEntryHeader(
  reader: ByteReader,
): Promise<{ contentHash: ContentHash; sizeBytes: number } | undefined> {
  let records = new Map<string, string>();
  for (;;) {
    const header = parseTarHeader(await readBlocks(reader, TAR_BLOCK_BYTES));
    if (header === undefined) {
      if (records.size > 0) {
        throw tarCorrupt('it ends after an extended header');
      }
      return undefined;
    }
    if (header.kind === 'pax') {
      if (header.sizeBytes > PAX_HEADER_BYTES_MAX) {
        throw tarCorrupt('an extended header is too long');
      }
      const padded = await readBlocks(reader, header.sizeBytes + padding(header.sizeBytes).length);
      records = parsePaxRecords(padded.subarray(0, header.sizeBytes));
      continue;
    }
    const name = records.get('path') ?? header.name;
    const size = records.get('size');
    const sizeBytes = size === undefined ? header.sizeBytes : Number(size);
    if (!isHashText(name) || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0) {
      throw tarCorrupt(`its member ${JSON.stringify(name.slice(0, 80))} is not named by a content hash`);
    }
    return { contentHash: parseContentHash(name), sizeBytes };
  }
}

class MemberBody {
  readonly #reader: ByteReader;
  #leftBytes: number;
  readonly #paddingBytes: number;
  #closed = false;

  constructor(reader: ByteReader, sizeBytes: number) {
    this.#reader = reader;
    this.#leftBytes = sizeBytes;
    this.#paddingBytes = padding(sizeBytes).length;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    if (this.#closed) {
      throw new Error('This member of the tar bundle has been passed');
    }
    while (this.#leftBytes > 0) {
      yield await this.#readPiece();
    }
  }

  async skipRest(): Promise<void> {
    this.#closed = true;
    while (this.#leftBytes > 0) {
      await this.#readPiece();
    }
    await readBlocks(this.#reader, this.#paddingBytes);
  }

  async #readPiece(): Promise<Uint8Array> {
    const piece = await this.#reader.readSome(Math.min(this.#leftBytes, PIECE_BYTES));
    if (piece === undefined) {
      throw tarCorrupt('it is truncated within a member');
    }
    this.#leftBytes -= piece.length;
    return piece;
  }
}

async function readBlocks(reader: ByteReader, byteCount: number): Promise<Uint8Array> {
  const bytes = await reader.read(byteCount);
  if (bytes.length < byteCount) {
    throw tarCorrupt('it is truncated');
  }
  return bytes;
}

/** The second end block, and at most more zeros behind it. */
async function requireOnlyZeros(reader: ByteReader): Promise<void> {
  const second = await readBlocks(reader, TAR_BLOCK_BYTES);
  for (let piece: Uint8Array | undefined = second; piece !== undefined; piece = await reader.readSome(PIECE_BYTES)) {
    if (piece.some((byte) => byte !== 0)) {
      throw tarCorrupt('something follows its end');
    }
  }
}

function isNotEmpty(bytes: Uint8Array): boolean {
  return bytes.length > 0;
}

function padding(sizeBytes: number): Uint8Array {
  return Buffer.alloc((TAR_BLOCK_BYTES - (sizeBytes % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES);
}
