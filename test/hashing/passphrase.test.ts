import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Passphrase } from '../../src/hashing/passphrase.ts';

describe('Passphrase', () => {
  it('keeps the text exactly as given, as UTF-8', () => {
    expect(Buffer.from(new Passphrase(' e\u0301 ').bytes).toString('hex')).toBe('2065cc8120');
  });

  it('refuses an empty text', () => {
    expect(() => new Passphrase('')).toThrow(RangeError);
  });

  it('cannot be printed by accident', () => {
    const passphrase = new Passphrase('secret');
    const printed = [`${passphrase}`, JSON.stringify({ passphrase }), inspect({ passphrase }), String(passphrase)];
    for (const text of printed) {
      expect(text).toContain('[passphrase]');
      expect(text).not.toContain('secret');
    }
  });
});
