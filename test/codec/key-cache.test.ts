import { pbkdf2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deriveKey, saltForWriting } from '../../src/codec/key-cache.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { BODIES_PER_SALT_MAX, DERIVED_KEYS_MAX } from '../../src/limits.ts';
import { withFlippedBit } from '../support/bytes.ts';

const salt = Buffer.from('80b8a2d00b062903f6618723c4386bfe', 'hex');

describe('derived keys', () => {
  it('are PBKDF2-HMAC-SHA256', async () => {
    const key = await deriveKey(new Passphrase('p'), { salt, iterationCount: 1000, keyBytes: 32 });
    expect(key.toString('hex')).toBe(pbkdf2Sync('p', salt, 1000, 32, 'sha256').toString('hex'));
  });

  it('are derived once per passphrase, salt, rounds and length, also for those who ask meanwhile', () => {
    const first = deriveKey(new Passphrase('q'), { salt, iterationCount: 1000, keyBytes: 32 });
    // The same promise: there was no second derivation, and none is needed later.
    expect(deriveKey(new Passphrase('q'), { salt: Uint8Array.from(salt), iterationCount: 1000, keyBytes: 32 })).toBe(
      first,
    );
    const other = withFlippedBit(salt, 127);
    for (const [text, request] of [
      ['r', { salt, iterationCount: 1000, keyBytes: 32 }],
      ['q', { salt: other, iterationCount: 1000, keyBytes: 32 }],
      ['q', { salt, iterationCount: 1001, keyBytes: 32 }],
      ['q', { salt, iterationCount: 1000, keyBytes: 48 }],
    ] as const) {
      expect(deriveKey(new Passphrase(text), request)).not.toBe(first);
    }
  });

  it('are forgotten, oldest use first, when there are too many', async () => {
    const passphrase = new Passphrase('many');
    const request = (index: number) => ({ salt: Buffer.from(`salt ${index}`), iterationCount: 1, keyBytes: 32 });
    const first = deriveKey(passphrase, request(0));
    const keys = [first];
    for (let index = 1; index <= DERIVED_KEYS_MAX; index += 1) {
      keys.push(deriveKey(passphrase, request(index)));
    }
    await Promise.all(keys);
    const again = deriveKey(passphrase, request(0));
    expect(again).not.toBe(first);
    expect((await again).equals(await first)).toBe(true);
  });
});

describe('the salt for writing', () => {
  it('is one per passphrase, whatever object holds it', () => {
    expect(saltForWriting(new Passphrase('a'))).toBe(saltForWriting(new Passphrase('a')));
    expect(saltForWriting(new Passphrase('a'))).not.toEqual(saltForWriting(new Passphrase('b')));
    expect(saltForWriting(new Passphrase('a')).length).toBe(16);
  });

  it('is replaced after as many bodies as it may serve', () => {
    const passphrase = new Passphrase('busy');
    const first = saltForWriting(passphrase);
    for (let count = 1; count < BODIES_PER_SALT_MAX; count += 1) {
      if (saltForWriting(passphrase) !== first) {
        expect.fail(`changed after ${count} bodies`);
      }
    }
    expect(saltForWriting(passphrase)).not.toEqual(first);
  });
});
