import type { Passphrase } from '../hashing/passphrase.ts';
import { ZSTD_LEVEL_BUFFER_DEFAULT, ZSTD_LEVEL_MAX, ZSTD_LEVEL_STREAM_DEFAULT } from '../limits.ts';
import { ARGCM1_MAGIC, openBuffer, openStream, sealBuffer, sealStream } from './argcm1.ts';
import { ByteReader } from './byte-reader.ts';
import { BodyCorruptError, PassphraseError } from './errors.ts';
import { GZIP_MAGIC, gunzipStream } from './gzip.ts';
import { openSaltedStream, SALTED_MAGIC } from './salted-cbc.ts';
import { collect, compressBuffer, decompressBuffer } from './zstd-buffer.ts';
import { ZSTD_MAGIC } from './zstd-frame.ts';
import { compressStream, decompressStream } from './zstd-stream.ts';

/**
 * How a body is stored: compressed as one zstd frame, then, in a sealed repository, encrypted. Legacy bodies (gzip,
 * `Salted__`) are read, never written. Whatever is not exactly one complete and intact body is an error, never a shorter
 * or different result. (`Salted__` alone has no integrity of its own: there the content hash is the last word.)
 */
export interface BodyCodec {
  readonly sealed: boolean;
  encode(plain: Uint8Array): Promise<Uint8Array>;
  /** @throws BodyCorruptError, PassphraseError */
  decode(body: Uint8Array, decodedBytesMax: number): Promise<Uint8Array>;
  encodeStream(plain: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /**
   * Yields before all is verified, so what was yielded counts only when the stream ends normally, which it does only
   * after the whole body was complete and verified.
   * @throws BodyCorruptError, PassphraseError
   */
  decodeStream(body: AsyncIterable<Uint8Array>, decodedBytesMax: number): AsyncIterable<Uint8Array>;
}

export interface BodyCodecOptions {
  /** zstd level, 1 to 19, for everything this codec writes. Without it, the measured defaults. */
  readonly level?: number;
}

/** With a passphrase: a sealed repository. Without: a plain one. */
export function createBodyCodec(passphrase: Passphrase | undefined, options: BodyCodecOptions = {}): BodyCodec {
  const bufferLevel = checkedLevel(options.level ?? ZSTD_LEVEL_BUFFER_DEFAULT);
  const streamLevel = checkedLevel(options.level ?? ZSTD_LEVEL_STREAM_DEFAULT);
  return {
    sealed: passphrase !== undefined,
    async encode(plain) {
      const frame = await compressBuffer(plain, bufferLevel);
      return passphrase === undefined ? frame : sealBuffer(frame, passphrase);
    },
    encodeStream(plain) {
      const frame = compressStream(plain, streamLevel);
      return passphrase === undefined ? frame : sealStream(frame, passphrase);
    },
    decode: (body, decodedBytesMax) => decodeBuffer(body, passphrase, decodedBytesMax),
    decodeStream: (body, decodedBytesMax) => decodeBodyStream(body, passphrase, decodedBytesMax),
  };
}

type Envelope = 'none' | 'argcm1' | 'salted';
const ENVELOPE_MAGIC_BYTES = SALTED_MAGIC.length;

async function decodeBuffer(
  body: Uint8Array,
  passphrase: Passphrase | undefined,
  decodedBytesMax: number,
): Promise<Uint8Array> {
  const envelope = envelopeOf(body, passphrase !== undefined);
  const compressed = envelope === 'argcm1' && passphrase !== undefined ? await openBuffer(body, passphrase) : body;
  if (envelope !== 'salted' && startsWith(compressed, ZSTD_MAGIC)) {
    return decompressBuffer(compressed, decodedBytesMax);
  }
  // Legacy bodies have one reader, the streaming one.
  return envelope === 'salted'
    ? collect(decodeBodyStream(once(body), passphrase, decodedBytesMax))
    : collect(decompressed(new ByteReader(once(compressed)), envelope, decodedBytesMax));
}

async function* decodeBodyStream(
  body: AsyncIterable<Uint8Array>,
  passphrase: Passphrase | undefined,
  decodedBytesMax: number,
): AsyncGenerator<Uint8Array> {
  const outer = new ByteReader(body);
  try {
    const envelope = envelopeOf(await outer.peek(ENVELOPE_MAGIC_BYTES), passphrase !== undefined);
    const inner = new ByteReader(openEnvelope(outer, envelope, passphrase));
    try {
      yield* decompressed(inner, envelope, decodedBytesMax);
    } finally {
      await inner.close();
    }
  } finally {
    await outer.close();
  }
}

/** Decides by the first bytes; there is no falling back from sealed to plain or the other way. */
function envelopeOf(start: Uint8Array, sealed: boolean): Envelope {
  const magic = startsWith(start, ARGCM1_MAGIC) ? 'argcm1' : startsWith(start, SALTED_MAGIC) ? 'salted' : 'none';
  if (sealed && magic === 'none') {
    if (startsWith(start, ZSTD_MAGIC) || startsWith(start, GZIP_MAGIC)) {
      throw new PassphraseError('wrong', 'A passphrase was given, but this body is not encrypted');
    }
    throw new BodyCorruptError('The body is not encrypted in any known way');
  }
  if (!sealed && magic !== 'none') {
    throw new PassphraseError('needed', 'This body is encrypted: a passphrase is needed');
  }
  return magic;
}

function openEnvelope(
  body: ByteReader,
  envelope: Envelope,
  passphrase: Passphrase | undefined,
): AsyncIterable<Uint8Array> {
  if (passphrase === undefined || envelope === 'none') {
    return body.rest();
  }
  return envelope === 'argcm1' ? openStream(body, passphrase) : openSaltedStream(body, passphrase);
}

async function* decompressed(
  body: ByteReader,
  envelope: Envelope,
  decodedBytesMax: number,
): AsyncGenerator<Uint8Array> {
  const start = await body.peek(ZSTD_MAGIC.length);
  if (startsWith(start, ZSTD_MAGIC)) {
    yield* decompressStream(body.rest(), decodedBytesMax);
  } else if (startsWith(start, GZIP_MAGIC)) {
    yield* gunzipStream(body, decodedBytesMax);
  } else if (start.length > 0 || envelope === 'none') {
    // The legacy writer left nothing for empty content, but always inside an envelope. A stored body without a single
    // byte is a truncated one.
    throw unknownContent(envelope);
  }
}

function unknownContent(envelope: Envelope): BodyCorruptError {
  return envelope === 'salted'
    ? new PassphraseError('wrong', 'The passphrase does not open this body, or the body is damaged')
    : new BodyCorruptError('The body is neither a zstd frame nor gzip');
}

function startsWith(bytes: Uint8Array, magic: Uint8Array): boolean {
  return bytes.length >= magic.length && magic.every((byte, index) => bytes[index] === byte);
}

function checkedLevel(level: number): number {
  if (!Number.isInteger(level) || level < 1 || level > ZSTD_LEVEL_MAX) {
    throw new RangeError(`A compression level is a whole number from 1 to ${ZSTD_LEVEL_MAX}`);
  }
  return level;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
