import { describe, expect, it } from 'vitest';
import {
  InvalidHashError,
  isHashText,
  parseChunkHash,
  parseContentHash,
  parseFileTreeHash,
} from '../../src/hashing/hashes.ts';

const HASH = 'ab'.repeat(32);

describe('hashes', () => {
  it.each([parseContentHash, parseChunkHash, parseFileTreeHash])(
    '%o takes 64 hex characters and lowers them',
    (parse) => {
      expect(parse(HASH)).toBe(HASH);
      expect(parse(HASH.toUpperCase())).toBe(HASH);
    },
  );

  it.each(['', 'ab', `${HASH}0`, ` ${HASH}`, `${HASH}\n`, 'g'.repeat(64)])('refuses %j', (text) => {
    expect(isHashText(text)).toBe(false);
    expect(() => parseContentHash(text)).toThrow(InvalidHashError);
  });

  it('names the kind it expected and does not repeat a long text', () => {
    expect(() => parseFileTreeHash('z'.repeat(500))).toThrow(/^Not a filetree hash: "z{80}" /);
  });
});
