import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Hasher } from '../../src/hashing/hasher.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { base64, passphraseOf, vectors } from '../support/bytes.ts';

describe('Hasher', () => {
  const cases: { name: string; passphrase: string | null; plaintextBase64: string; hash: string }[] =
    vectors('hashes.json').cases;

  it.each(cases.map((vector, index) => ({ index, ...vector })))('hashes vector $index: $name', (vector) => {
    const hasher = new Hasher(passphraseOf(vector.passphrase));
    const bytes = base64(vector.plaintextBase64);
    expect(hasher.contentHash(bytes)).toBe(vector.hash);
    expect(hasher.chunkHash(bytes)).toBe(vector.hash);
    expect(hasher.fileTreeHash(bytes)).toBe(vector.hash);
  });

  it('gives the known answers of the format for the passphrase "wouter"', () => {
    const hasher = new Hasher(new Passphrase('wouter'));
    expect(hasher.contentHash(Buffer.from('world'))).toMatch(/^4e1c18b56cca9e5c.*ee1b$/);
    expect(hasher.contentHash(Buffer.from('42'))).toMatch(/^3eba035d48fdc6a6.*2e93$/);
  });

  it('gives the same hash however the bytes are cut, and one hash does not disturb another', () => {
    const hasher = new Hasher(new Passphrase('p'));
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), (pieces) => {
        const running = hasher.start();
        const other = hasher.start();
        for (const piece of pieces) {
          running.update(piece);
          other.update(Buffer.from('x'));
        }
        expect(running.digest()).toBe(hasher.contentHash(Buffer.concat(pieces)));
      }),
    );
  });
});
