import { createHash, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Passphrase } from '../hashing/passphrase.ts';
import { BODIES_PER_SALT_MAX, DERIVED_KEYS_MAX } from '../limits.ts';

/**
 * Derived keys of this process: one PBKDF2 per distinct (passphrase, salt, rounds), however many bodies carry that salt
 * and however many ask at once. See docs/decisions/0001-one-salt-per-process.md.
 */

const derive = promisify(pbkdf2);
const SALT_BYTES = 16;

const keys = new LRUCache<string, Promise<Buffer>>({ max: DERIVED_KEYS_MAX });
const writeSalts = new LRUCache<string, { salt: Uint8Array; bodyCount: number }>({ max: DERIVED_KEYS_MAX });
/** The digest stands for the passphrase in cache keys, so that the text itself is not kept a second time. */
const digests = new WeakMap<Passphrase, string>();

export interface KeyRequest {
  readonly salt: Uint8Array;
  readonly iterationCount: number;
  readonly keyBytes: number;
}

/** PBKDF2-HMAC-SHA256, on the thread pool. A failed derivation is not kept. */
export function deriveKey(passphrase: Passphrase, request: KeyRequest): Promise<Buffer> {
  const { salt, iterationCount, keyBytes } = request;
  const id = `${digestOf(passphrase)}:${Buffer.from(salt).toString('hex')}:${iterationCount}:${keyBytes}`;
  let key = keys.get(id);
  if (key === undefined) {
    key = derive(passphrase.bytes, salt, iterationCount, keyBytes, 'sha256');
    keys.set(id, key);
    key.catch(() => keys.delete(id));
  }
  return key;
}

/** The salt of the next body this process writes under the passphrase: the same one, until it has served its share. */
export function saltForWriting(passphrase: Passphrase): Uint8Array {
  const id = digestOf(passphrase);
  let current = writeSalts.get(id);
  if (current === undefined || current.bodyCount >= BODIES_PER_SALT_MAX) {
    current = { salt: randomBytes(SALT_BYTES), bodyCount: 0 };
    writeSalts.set(id, current);
  }
  current.bodyCount += 1;
  return current.salt;
}

function digestOf(passphrase: Passphrase): string {
  let digest = digests.get(passphrase);
  if (digest === undefined) {
    digest = createHash('sha256').update(passphrase.bytes).digest('hex');
    digests.set(passphrase, digest);
  }
  return digest;
}
