import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sealBuffer } from '../../src/codec/argcm1.ts';
import { type BodyCodec, createBodyCodec } from '../../src/codec/body-codec.ts';
import { BodyCorruptError, PassphraseError } from '../../src/codec/errors.ts';
import { Hasher } from '../../src/hashing/hasher.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { base64, collected, generated, inPieces, passphraseOf, sha256, vectors } from '../support/bytes.ts';

const LIMIT = 1_000_000;
const plainCodec = createBodyCodec(undefined);
const sealedCodec = createBodyCodec(new Passphrase('correct horse'));

/** What every reader makes of a body: whole, and streamed in pieces of several sizes. */
async function decodedAllWays(codec: BodyCodec, body: Uint8Array, limit = LIMIT): Promise<Buffer> {
  const whole = Buffer.from(await codec.decode(body, limit));
  for (const pieceBytes of [1, 48, 1_000_000]) {
    expect(Buffer.compare(await collected(codec.decodeStream(inPieces(body, pieceBytes), limit)), whole)).toBe(0);
  }
  return whole;
}

async function rejectedAllWays(codec: BodyCodec, body: Uint8Array): Promise<Error> {
  const rejection = (decoding: Promise<unknown>): Promise<Error> =>
    decoding.then(
      () => new Error('accepted'),
      (error: Error) => error,
    );
  const error = await rejection(codec.decode(body, LIMIT));
  expect(error).toBeInstanceOf(BodyCorruptError);
  for (const pieceBytes of [1, 48, 1_000_000]) {
    const streamed = await rejection(collected(codec.decodeStream(inPieces(body, pieceBytes), LIMIT)));
    expect(streamed.message).toBe(error.message);
    expect(streamed.name).toBe(error.name);
  }
  return error;
}

describe('published bodies', () => {
  it.each(
    vectors('chunks-gcm.json').cases as {
      name: string;
      passphrase: string;
      contentHash: string;
      plaintextLength: number;
      plaintextSha256: string;
      frameBase64: string;
      saltHex: string;
      iterations: number;
      nonce0Hex: string;
      blobBase64: string;
    }[],
  )('AR-53, CS-28: chunks-gcm, $name', async (vector) => {
    const passphrase = new Passphrase(vector.passphrase);
    const plain = await decodedAllWays(createBodyCodec(passphrase), base64(vector.blobBase64));
    expect(plain.length).toBe(vector.plaintextLength);
    expect(sha256(plain)).toBe(vector.plaintextSha256);
    expect(new Hasher(passphrase).contentHash(plain)).toBe(vector.contentHash);
    const resealed = await sealBuffer(base64(vector.frameBase64), passphrase, {
      salt: Buffer.from(vector.saltHex, 'hex'),
      baseNonce: Buffer.from(vector.nonce0Hex, 'hex'),
      iterationCount: vector.iterations,
    });
    expect(Buffer.from(resealed).toString('base64')).toBe(vector.blobBase64);
  });

  it.each(
    vectors('chunks-cbc-legacy.json').cases as {
      name: string;
      passphrase: string;
      contentHash: string;
      plaintextBase64: string;
      blobBase64: string;
    }[],
  )('AR-53, CS-29: chunks-cbc-legacy, $name', async (vector) => {
    const passphrase = new Passphrase(vector.passphrase);
    const plain = await decodedAllWays(createBodyCodec(passphrase), base64(vector.blobBase64));
    expect(plain.toString('base64')).toBe(vector.plaintextBase64);
    expect(new Hasher(passphrase).contentHash(plain)).toBe(vector.contentHash);
  });

  it.each(
    vectors('chunks-plaintext.json').cases as {
      name: string;
      contentHash: string;
      plaintextBase64: string;
      blobBase64: string;
      gzipLegacyBlobBase64: string;
    }[],
  )('CS-29: chunks-plaintext, $name', async (vector) => {
    for (const body of [vector.blobBase64, vector.gzipLegacyBlobBase64]) {
      const plain = await decodedAllWays(plainCodec, base64(body));
      expect(plain.toString('base64')).toBe(vector.plaintextBase64);
      expect(new Hasher().contentHash(plain)).toBe(vector.contentHash);
    }
  });

  it.each(vectors('negative.json').cases as { name: string; passphrase: string; reason: string; blobBase64: string }[])(
    'AR-56, AR-57: negative, $name ($reason)',
    async (vector) => {
      await rejectedAllWays(createBodyCodec(passphraseOf(vector.passphrase)), base64(vector.blobBase64));
    },
  );

  it('AR-55: the golden files of Arius 7', async () => {
    const codec = createBodyCodec(new Passphrase('wouter'));
    const zstd =
      'QXJHQ00xS26me7m6bc2Q3+ZDe6/aq6CGAQBfG/7XvxNSr89yJ/glAAAAogWZnMab1t9cK5IrHge1/yJ31bxTlGwu5zty18OEwC3asvpHfU8yhlsOteROyh76gNmU05YAAAAA/qAeNp/dkCD7/Xf+gmJO5Q==';
    const cbc =
      'U2FsdGVkX1/erb7vAQIDBKGqc8GKc9afDu96dcfeW/f0+FpUsWs9aw4AhBR7oOlJt/h+cFpJJJgQlsc8fNZ0M4i3027zE07d8cVAm/7p+Gc=';
    expect((await decodedAllWays(codec, base64(zstd))).toString()).toBe('Hello, zstd golden file!');
    expect((await decodedAllWays(codec, base64(cbc))).toString()).toBe('Hello, Salted__ CBC golden file!');
  });
});

describe('encode and decode', () => {
  it('CS-28: give back any content, whole or streamed, plain or sealed', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 4000 }),
      fc.integer({ min: 0, max: 200_000 }).map((n) => Buffer.alloc(n, 'abcd')),
    );
    await fc.assert(
      fc.asyncProperty(content, fc.constantFrom(plainCodec, sealedCodec), async (bytes, codec) => {
        const bodies = [await codec.encode(bytes), await collected(codec.encodeStream(inPieces(bytes, 1000)))];
        for (const body of bodies) {
          expect(Buffer.compare(await codec.decode(body, bytes.length), bytes)).toBe(0);
          expect(Buffer.compare(await collected(codec.decodeStream(inPieces(body, 777), bytes.length)), bytes)).toBe(0);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('CS-28: gzip bodies are read, plain and sealed over several records', async () => {
    const content = generated('gzip', 200_000);
    const sealed = await sealBuffer(gzipSync(content), new Passphrase('correct horse'));
    expect(Buffer.compare(await decodedAllWays(plainCodec, gzipSync(content)), content)).toBe(0);
    expect(Buffer.compare(await decodedAllWays(sealedCodec, sealed), content)).toBe(0);
  });

  it('let a limit be met exactly and never exceeded', async () => {
    const bytes = Buffer.alloc(300_000, 'limit');
    for (const codec of [plainCodec, sealedCodec]) {
      const body = await codec.encode(bytes);
      for (const decode of [
        (limit: number) => codec.decode(body, limit),
        (limit: number) => collected(codec.decodeStream(inPieces(body), limit)),
      ]) {
        expect((await decode(bytes.length)).length).toBe(bytes.length);
        await expect(decode(bytes.length - 1)).rejects.toThrow(/bytes allowed/);
      }
    }
  });

  it('take a level from 1 to 19', async () => {
    for (const level of [0, 20, 1.5, Number.NaN]) {
      expect(() => createBodyCodec(undefined, { level })).toThrow(RangeError);
    }
    const text = Buffer.from(Array.from({ length: 5000 }, (_, index) => `line ${index * 7919} of the text\n`).join(''));
    const fast = createBodyCodec(undefined, { level: 1 });
    const small = createBodyCodec(undefined, { level: 19 });
    expect((await small.encode(text)).length).toBeLessThan((await fast.encode(text)).length);
    expect((await collected(small.encodeStream(inPieces(text)))).length).toBeLessThan(
      (await collected(fast.encodeStream(inPieces(text)))).length,
    );
  });

  it('agree with the zstd command where there is one', async ({ skip }) => {
    skip(!hasCommand('zstd'), 'no zstd command here');
    const text = Buffer.from('for another decoder\n'.repeat(5000));
    for (const frame of [await plainCodec.encode(text), await collected(plainCodec.encodeStream(inPieces(text)))]) {
      expect(Buffer.compare(execFileSync('zstd', ['-d', '-c'], { input: frame }), text)).toBe(0);
    }
    const theirs = execFileSync('zstd', ['-c', '-7'], { input: text });
    expect(Buffer.compare(await decodedAllWays(plainCodec, theirs), text)).toBe(0);
  });
});

describe('which body is which', () => {
  it('SN-04: an encrypted body without a passphrase says that one is needed', async () => {
    for (const body of [await sealedCodec.encode(Buffer.from('x')), Buffer.from('Salted__12345678................')]) {
      expect(await rejectedAllWays(plainCodec, body)).toMatchObject({ name: 'PassphraseError', reason: 'needed' });
    }
  });

  it('SN-05: another passphrase says that it may be the wrong one', async () => {
    const other = createBodyCodec(new Passphrase('battery staple'));
    const cbc = base64(vectors('chunks-cbc-legacy.json').cases[0].blobBase64);
    for (const body of [await sealedCodec.encode(Buffer.from('x')), cbc]) {
      expect(await rejectedAllWays(other, body)).toMatchObject({ name: 'PassphraseError', reason: 'wrong' });
    }
  });

  it('SN-06: a passphrase for a body that is not encrypted says so', async () => {
    for (const body of [await plainCodec.encode(Buffer.from('x')), gzipSync('x')]) {
      const error = await rejectedAllWays(sealedCodec, body);
      expect(error).toMatchObject({ name: 'PassphraseError', reason: 'wrong' });
      expect(error.message).toMatch(/not encrypted/);
    }
  });

  it('nothing falls back to being taken as it is', async () => {
    for (const body of [Buffer.from('plain text'), Buffer.from('ArGCM'), Buffer.alloc(100)]) {
      expect(await rejectedAllWays(plainCodec, body)).not.toBeInstanceOf(PassphraseError);
      expect(await rejectedAllWays(sealedCodec, body)).not.toBeInstanceOf(PassphraseError);
    }
  });

  it('a stored body without a single byte is a truncated one, but sealed emptiness is empty content', async () => {
    await rejectedAllWays(plainCodec, Buffer.alloc(0));
    await rejectedAllWays(sealedCodec, Buffer.alloc(0));
    const empty = await sealBuffer(Buffer.alloc(0), new Passphrase('correct horse'));
    expect((await decodedAllWays(sealedCodec, empty)).length).toBe(0);
  });
});

describe('streams', () => {
  it('pass on the error of their source as it is', async () => {
    async function* failing(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(0, bytes.length - 30);
      throw new Error('the network is gone');
    }
    const content = Buffer.alloc(200_000, 'source');
    for (const codec of [plainCodec, sealedCodec]) {
      const body = await codec.encode(content);
      await expect(collected(codec.decodeStream(failing(body), LIMIT))).rejects.toThrow('the network is gone');
      await expect(collected(codec.encodeStream(failing(content)))).rejects.toThrow('the network is gone');
    }
  });

  it('CS-09: release their source when the reader stops early', async () => {
    const noise = generated('noise', 1_000_000);
    for (const codec of [plainCodec, sealedCodec]) {
      const decoding = watched(inPieces(await codec.encode(noise), 10_000));
      await takeSome(codec.decodeStream(decoding.source, 1e9));
      expect(decoding.released()).toBe(true);
      const encoding = watched(inPieces(noise, 10_000));
      await takeSome(codec.encodeStream(encoding.source));
      expect(encoding.released()).toBe(true);
    }
  });
});

/** More than a header: enough that the source must have begun. */
async function takeSome(stream: AsyncIterable<Uint8Array>): Promise<void> {
  let takenBytes = 0;
  for await (const piece of stream) {
    takenBytes += piece.length;
    if (takenBytes > 100_000) {
      break;
    }
  }
}

function watched(source: AsyncIterable<Uint8Array>): { source: AsyncIterable<Uint8Array>; released: () => boolean } {
  let released = false;
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } finally {
      released = true;
    }
  }
  return { source: pieces(), released: () => released };
}

function hasCommand(name: string): boolean {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
