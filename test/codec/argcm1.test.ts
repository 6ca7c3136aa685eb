import { describe, expect, it } from 'vitest';
import { openBuffer, openStream, sealBuffer, sealStream } from '../../src/codec/argcm1.ts';
import { ByteReader } from '../../src/codec/byte-reader.ts';
import { BodyCorruptError, PassphraseError } from '../../src/codec/errors.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { base64, collected, generated, inPieces, sha256, vectors } from '../support/bytes.ts';

const file = vectors('argcm1-container.json');
const RECORD = 65_536;
const HEADER = 38;
const OVERHEAD = 20;

describe('ArGCM1', () => {
  it.each(
    file.cases as {
      bodyLength: number;
      iterations: number;
      passphrase: string;
      saltHex: string;
      nonce0Hex: string;
      blobLength: number;
      blobSha256: string;
      blobBase64?: string;
    }[],
  )('seals and opens the vector of $bodyLength bytes, $iterations rounds', async (vector) => {
    const passphrase = new Passphrase(vector.passphrase);
    const body = generated('container', vector.bodyLength);
    const sealed = await sealBuffer(body, passphrase, {
      salt: Buffer.from(vector.saltHex, 'hex'),
      baseNonce: Buffer.from(vector.nonce0Hex, 'hex'),
      iterationCount: vector.iterations,
    });
    expect(sealed.length).toBe(vector.blobLength);
    expect(sha256(sealed)).toBe(vector.blobSha256);
    if (vector.blobBase64 !== undefined) {
      expect(Buffer.compare(sealed, base64(vector.blobBase64))).toBe(0);
    }
    expect(sha256(await openBuffer(sealed, passphrase))).toBe(sha256(body));
    for (const pieceBytes of [977, RECORD, 1_000_000]) {
      expect(sha256(await openedStream(sealed, passphrase, pieceBytes))).toBe(sha256(body));
    }
  });

  it('seals a stream and a buffer to the same form', async () => {
    const passphrase = new Passphrase('p');
    for (const length of [0, 1, RECORD - 1, RECORD, RECORD + 1, 3 * RECORD]) {
      const body = generated('both', length);
      const streamed = await collected(sealStream(inPieces(body, 1000), passphrase));
      expect(streamed.length).toBe(HEADER + length + OVERHEAD * (Math.ceil(length / RECORD) + 1));
      expect((await sealBuffer(body, passphrase)).length).toBe(streamed.length);
      expect(sha256(await openBuffer(streamed, passphrase))).toBe(sha256(body));
    }
  });

  it('AR-56: records that changed places, were repeated or dropped are rejected', async () => {
    const { passphrase: text, saltHex, nonce0Hex, blobSha256 } = negatives().reordered;
    const passphrase = new Passphrase(text);
    const sealed = await sealBuffer(generated('two', RECORD + 100), passphrase, {
      salt: Buffer.from(saltHex, 'hex'),
      baseNonce: Buffer.from(nonce0Hex, 'hex'),
    });
    expect(sha256(sealed)).toBe(blobSha256);
    const header = sealed.subarray(0, HEADER);
    const first = sealed.subarray(HEADER, HEADER + RECORD + OVERHEAD);
    const second = sealed.subarray(HEADER + RECORD + OVERHEAD, sealed.length - OVERHEAD);
    const end = sealed.subarray(sealed.length - OVERHEAD);
    const wrong = [
      [header, second, first, end],
      [header, first, first, second, end],
      [header, second, end],
      [header, first, end],
      [header, end],
    ];
    for (const parts of wrong) {
      await expectRejected(Buffer.concat(parts), passphrase);
    }
  });

  it('rejects whatever follows the end marker', async () => {
    const passphrase = new Passphrase('p');
    const sealed = await sealBuffer(Buffer.from('body'), passphrase);
    await expectRejected(Buffer.concat([sealed, Buffer.alloc(1)]), passphrase);
    await expectRejected(Buffer.concat([sealed, sealed]), passphrase);
  });

  it('gives every body its own nonce under the salt of this process', async () => {
    const passphrase = new Passphrase('p');
    const headers = await Promise.all(
      Array.from({ length: 20 }, async () => Buffer.from(await sealBuffer(Buffer.from('body'), passphrase))),
    );
    expect(new Set(headers.map((sealed) => sealed.subarray(6, 22).toString('hex'))).size).toBe(1);
    expect(new Set(headers.map((sealed) => sealed.subarray(26, 38).toString('hex'))).size).toBe(20);
  });

  it('says that the passphrase may be wrong when the first record does not open', async () => {
    const sealed = await sealBuffer(Buffer.from('body'), new Passphrase('right'));
    await expect(openBuffer(sealed, new Passphrase('wrong'))).rejects.toMatchObject({ reason: 'wrong' });
    await expect(openedStream(sealed, new Passphrase('wrong'), 10)).rejects.toBeInstanceOf(PassphraseError);
  });

  it('releases the source when sealing ends early', async () => {
    let released = false;
    async function* source(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          yield Buffer.alloc(RECORD);
        }
      } finally {
        released = true;
      }
    }
    for await (const piece of sealStream(source(), new Passphrase('p'))) {
      if (piece.length > RECORD) {
        break;
      }
    }
    expect(released).toBe(true);
  });
});

function negatives(): { reordered: { passphrase: string; saltHex: string; nonce0Hex: string; blobSha256: string } } {
  return vectors('negative.json');
}

function openedStream(sealed: Uint8Array, passphrase: Passphrase, pieceBytes: number): Promise<Buffer> {
  return collected(openStream(new ByteReader(inPieces(sealed, pieceBytes)), passphrase));
}

async function expectRejected(sealed: Uint8Array, passphrase: Passphrase): Promise<void> {
  await expect(openBuffer(sealed, passphrase)).rejects.toBeInstanceOf(BodyCorruptError);
  await expect(openedStream(sealed, passphrase, 1000)).rejects.toBeInstanceOf(BodyCorruptError);
}
