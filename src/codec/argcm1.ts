import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Passphrase } from '../hashing/passphrase.ts';
import { PBKDF2_ITERATIONS_MAX, PBKDF2_ITERATIONS_WRITTEN } from '../limits.ts';
import { ByteReader } from './byte-reader.ts';
import { BodyCorruptError, PassphraseError } from './errors.ts';
import { deriveKey, saltForWriting } from './key-cache.ts';

/**
 * The `ArGCM1` envelope: a header, then AES-256-GCM records, then an authenticated end marker.
 *
 *     "ArGCM1" | salt 16 | PBKDF2 rounds u32 LE | base nonce 12 | { length u32 LE | ciphertext | tag 16 }… | 0 u32 LE | tag 16
 *
 * Plaintext is released only after its record's tag holds, and the body is whole only when the end marker's tag holds and
 * nothing follows it. The nonce of a record binds its position, so records cannot be moved, dropped or repeated.
 */

export const ARGCM1_MAGIC = Buffer.from('ArGCM1', 'latin1');
const HEADER_BYTES = 38;
const SALT_OFFSET = 6;
const ROUNDS_OFFSET = 22;
const NONCE_OFFSET = 26;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;
/** Plaintext of one record; every one but the last is full. Fixed by the format. */
const RECORD_DATA_BYTES = 65_536;
const RECORD_OVERHEAD_BYTES = LENGTH_BYTES + TAG_BYTES;
const NOTHING = new Uint8Array(0);

/** What a header says, with the key it leads to. */
interface Opened {
  readonly key: Uint8Array;
  readonly baseNonce: Uint8Array;
}

/** For tests with published bytes; production draws both. */
export interface FixedHeader {
  readonly salt: Uint8Array;
  readonly baseNonce: Uint8Array;
  readonly iterationCount?: number;
}

export async function sealBuffer(plain: Uint8Array, passphrase: Passphrase, fixed?: FixedHeader): Promise<Uint8Array> {
  const { header, opened } = await startSealing(passphrase, fixed);
  const recordCount = Math.ceil(plain.length / RECORD_DATA_BYTES);
  const sealed = Buffer.allocUnsafe(HEADER_BYTES + plain.length + (recordCount + 1) * RECORD_OVERHEAD_BYTES);
  sealed.set(header, 0);
  let offset = HEADER_BYTES;
  for (let index = 0; index < recordCount; index += 1) {
    const data = plain.subarray(index * RECORD_DATA_BYTES, (index + 1) * RECORD_DATA_BYTES);
    sealed.set(sealRecord(opened, index, data), offset);
    offset += data.length + RECORD_OVERHEAD_BYTES;
  }
  sealed.set(sealRecord(opened, recordCount, NOTHING), offset);
  return sealed;
}

export async function* sealStream(
  plain: AsyncIterable<Uint8Array>,
  passphrase: Passphrase,
): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(plain);
  try {
    const { header, opened } = await startSealing(passphrase);
    yield header;
    for (let index = 0; ; index += 1) {
      const data = await reader.read(RECORD_DATA_BYTES);
      yield sealRecord(opened, index, data);
      if (data.length === 0) {
        return;
      }
    }
  } finally {
    await reader.close();
  }
}

/** All records are verified before any plaintext is returned. */
export async function openBuffer(body: Uint8Array, passphrase: Passphrase): Promise<Uint8Array> {
  const opened = await readHeader(body.subarray(0, HEADER_BYTES), passphrase);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const plain: Uint8Array[] = [];
  let offset = HEADER_BYTES;
  for (let index = 0; ; index += 1) {
    const dataBytes = readLength(bytes.subarray(offset, offset + LENGTH_BYTES));
    const end = offset + RECORD_OVERHEAD_BYTES + dataBytes;
    const data = openRecord(opened, index, bytes.subarray(offset + LENGTH_BYTES, end), dataBytes);
    offset = end;
    if (dataBytes === 0) {
      break;
    }
    plain.push(data);
  }
  if (offset !== bytes.length) {
    throw new BodyCorruptError('Bytes follow the end marker of the encrypted body');
  }
  return plain.length === 1 ? (plain[0] ?? NOTHING) : Buffer.concat(plain);
}

export async function* openStream(body: ByteReader, passphrase: Passphrase): AsyncGenerator<Uint8Array> {
  const opened = await readHeader(await body.read(HEADER_BYTES), passphrase);
  for (let index = 0; ; index += 1) {
    const dataBytes = readLength(await body.read(LENGTH_BYTES));
    const data = openRecord(opened, index, await body.read(dataBytes + TAG_BYTES), dataBytes);
    if (dataBytes === 0) {
      break;
    }
    yield data;
  }
  if ((await body.peek(1)).length > 0) {
    throw new BodyCorruptError('Bytes follow the end marker of the encrypted body');
  }
}

async function startSealing(passphrase: Passphrase, fixed?: FixedHeader): Promise<{ header: Buffer; opened: Opened }> {
  const salt = fixed?.salt ?? saltForWriting(passphrase);
  const baseNonce = fixed?.baseNonce ?? randomBytes(NONCE_BYTES);
  const iterationCount = fixed?.iterationCount ?? PBKDF2_ITERATIONS_WRITTEN;
  const header = Buffer.alloc(HEADER_BYTES);
  header.set(ARGCM1_MAGIC, 0);
  header.set(salt, SALT_OFFSET);
  header.writeUInt32LE(iterationCount, ROUNDS_OFFSET);
  header.set(baseNonce, NONCE_OFFSET);
  return {
    header,
    opened: { key: await deriveKey(passphrase, { salt, iterationCount, keyBytes: KEY_BYTES }), baseNonce },
  };
}

async function readHeader(header: Uint8Array, passphrase: Passphrase): Promise<Opened> {
  if (header.length < HEADER_BYTES) {
    throw new BodyCorruptError('The encrypted body ends within its header');
  }
  const bytes = Buffer.from(header);
  const iterationCount = bytes.readUInt32LE(ROUNDS_OFFSET);
  if (iterationCount === 0 || iterationCount > PBKDF2_ITERATIONS_MAX) {
    throw new BodyCorruptError(`The header of the encrypted body asks for ${iterationCount} key derivation rounds`);
  }
  const salt = bytes.subarray(SALT_OFFSET, ROUNDS_OFFSET);
  return {
    key: await deriveKey(passphrase, { salt, iterationCount, keyBytes: KEY_BYTES }),
    baseNonce: bytes.subarray(NONCE_OFFSET, HEADER_BYTES),
  };
}

function readLength(field: Uint8Array): number {
  if (field.length < LENGTH_BYTES) {
    throw new BodyCorruptError('The encrypted body ends before its end marker');
  }
  const dataBytes = Buffer.from(field.buffer, field.byteOffset, field.byteLength).readUInt32LE(0);
  if (dataBytes > RECORD_DATA_BYTES) {
    throw new BodyCorruptError(`A record of the encrypted body claims ${dataBytes} bytes`);
  }
  return dataBytes;
}

function sealRecord(opened: Opened, index: number, data: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', opened.key, nonceOf(opened.baseNonce, index));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(data.length, 0);
  const ciphertext = cipher.update(data);
  cipher.final();
  return Buffer.concat([length, ciphertext, cipher.getAuthTag()]);
}

function openRecord(opened: Opened, index: number, record: Uint8Array, dataBytes: number): Uint8Array {
  if (record.length < dataBytes + TAG_BYTES) {
    throw new BodyCorruptError('The encrypted body ends within a record');
  }
  const decipher = createDecipheriv('aes-256-gcm', opened.key, nonceOf(opened.baseNonce, index), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAuthTag(record.subarray(dataBytes));
  const data = decipher.update(record.subarray(0, dataBytes));
  try {
    decipher.final();
  } catch (cause) {
    if (index === 0) {
      throw new PassphraseError('wrong', 'The passphrase does not open this body, or its first record is damaged', {
        cause,
      });
    }
    throw new BodyCorruptError(`Record ${index} of the encrypted body is damaged`, { cause });
  }
  return data;
}

/** The base nonce with its first four bytes XORed by the record's index, little-endian. XOR, not addition. */
function nonceOf(baseNonce: Uint8Array, index: number): Uint8Array {
  const nonce = Buffer.from(baseNonce);
  nonce.writeUInt32LE((nonce.readUInt32LE(0) ^ index) >>> 0, 0);
  return nonce;
}
