import { createDecipheriv } from 'node:crypto';
import type { Passphrase } from '../hashing/passphrase.ts';
import type { ByteReader } from './byte-reader.ts';
import { BodyCorruptError, PassphraseError } from './errors.ts';
import { deriveKey } from './key-cache.ts';

/**
 * The legacy `Salted__` envelope, read only: AES-256-CBC as `openssl enc -aes-256-cbc -pbkdf2` writes it. It has no
 * integrity of its own: what protects its content is the compressed form inside, and the content hash.
 */

export const SALTED_MAGIC = Buffer.from('Salted__', 'latin1');
const HEADER_BYTES = 16;
const SALT_OFFSET = 8;
const KEY_BYTES = 32;
const KEY_AND_IV_BYTES = 48;
/** Fixed by the legacy format (the default of openssl). */
const ROUNDS = 10_000;
const PIECE_BYTES = 65_536;

export async function* openSaltedStream(body: ByteReader, passphrase: Passphrase): AsyncGenerator<Uint8Array> {
  const header = await body.read(HEADER_BYTES);
  if (header.length < HEADER_BYTES) {
    throw new BodyCorruptError('The encrypted body ends within its header');
  }
  const salt = Uint8Array.from(header.subarray(SALT_OFFSET));
  const secret = await deriveKey(passphrase, { salt, iterationCount: ROUNDS, keyBytes: KEY_AND_IV_BYTES });
  const decipher = createDecipheriv('aes-256-cbc', secret.subarray(0, KEY_BYTES), secret.subarray(KEY_BYTES));
  let released = false;
  for (;;) {
    const piece = await body.readSome(PIECE_BYTES);
    if (piece === undefined) {
      break;
    }
    const plain = decipher.update(piece);
    if (plain.length > 0) {
      released = true;
      yield plain;
    }
  }
  const last = finish(() => decipher.final(), released);
  if (last.length > 0) {
    yield last;
  }
}

function finish(final: () => Uint8Array, released: boolean): Uint8Array {
  try {
    return final();
  } catch (cause) {
    throw released
      ? new BodyCorruptError('The padding of the encrypted body is wrong: truncated or damaged', { cause })
      : new PassphraseError('wrong', 'The passphrase does not open this body, or the body is damaged', { cause });
  }
}
