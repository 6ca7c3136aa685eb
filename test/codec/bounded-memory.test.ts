import { createCipheriv } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';

/**
 * Invariant 7 for bodies: what is held between the source and the reader does not grow with the body. Measured in bytes:
 * the content does not compress, so what went in and has not come out is what is held.
 */

const MIB = 1024 * 1024;
const BODY_BYTES = 300 * MIB;
const HELD_BYTES_MAX = 24 * MIB;
const PIECE_BYTES = 256 * 1024;
/** Longer than the window at this level, and repeated: every repetition is as good as new. */
const noise = createCipheriv('aes-256-ctr', Buffer.alloc(32), Buffer.alloc(16)).update(Buffer.alloc(32 * MIB));

class CountedSource {
  takenBytes = 0;

  async *pieces(): AsyncGenerator<Uint8Array> {
    while (this.takenBytes < BODY_BYTES) {
      const offset = this.takenBytes % noise.length;
      this.takenBytes += PIECE_BYTES;
      yield noise.subarray(offset, offset + PIECE_BYTES);
    }
  }
}

describe.each([
  ['plain', undefined],
  ['sealed', new Passphrase('p')],
])('a %s body of 300 MiB', (_, passphrase) => {
  const codec = createBodyCodec(passphrase, { level: 1 });

  it('invariant 7: passes through encoding and decoding with a bounded number of bytes held', async () => {
    const source = new CountedSource();
    let decodedBytes = 0;
    let heldBytesMax = 0;
    for await (const piece of codec.decodeStream(codec.encodeStream(source.pieces()), BODY_BYTES)) {
      decodedBytes += piece.length;
      heldBytesMax = Math.max(heldBytesMax, source.takenBytes - decodedBytes);
    }
    expect(decodedBytes).toBe(BODY_BYTES);
    expect(heldBytesMax).toBeLessThan(HELD_BYTES_MAX);
  }, 120_000);

  it('invariant 7: waits for a reader that does not read', async () => {
    const source = new CountedSource();
    const decoded = codec.decodeStream(codec.encodeStream(source.pieces()), BODY_BYTES)[Symbol.asyncIterator]();
    await decoded.next();
    let before = -1;
    // Until a while passes in which nothing more was taken: everything that fits is held now.
    while (before !== source.takenBytes) {
      before = source.takenBytes;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(source.takenBytes).toBeLessThan(HELD_BYTES_MAX);
    await decoded.return?.();
  });
});
