import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import tar from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Hasher } from '../../src/hashing/hasher.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { TarBundleWriter } from '../../src/repository/tar-bundle.ts';
import { base64, collected, generated, inPieces, vectors } from '../support/bytes.ts';

/**
 * A second reader of stored bodies, written from the format's text alone: WebCrypto for keys and ciphers, Node's one-shot
 * decoders, tar-stream. It shares nothing with the product, as a recovery script would not.
 */

const PASSPHRASE = 'correct horse battery staple';

async function derivedBits(salt: Uint8Array, iterations: number, bytes: number): Promise<Buffer> {
  const secret = await crypto.subtle.importKey('raw', Buffer.from(PASSPHRASE), 'PBKDF2', false, ['deriveBits']);
  const algorithm = { name: 'PBKDF2', hash: 'SHA-256', salt: Uint8Array.from(salt), iterations };
  return Buffer.from(await crypto.subtle.deriveBits(algorithm, secret, bytes * 8));
}

async function openedGcm(body: Buffer): Promise<Buffer> {
  expect(body.toString('latin1', 0, 6)).toBe('ArGCM1');
  const raw = await derivedBits(body.subarray(6, 22), body.readUInt32LE(22), 32);
  const key = await crypto.subtle.importKey('raw', Uint8Array.from(raw), 'AES-GCM', false, ['decrypt']);
  const parts: Buffer[] = [];
  for (let offset = 38, index = 0; ; index += 1) {
    const length = body.readUInt32LE(offset);
    const iv = Uint8Array.from(body.subarray(26, 38));
    for (let byte = 0; byte < 4; byte += 1) {
      iv[byte] = (iv[byte] ?? 0) ^ ((index >>> (8 * byte)) & 0xff);
    }
    const sealed = Uint8Array.from(body.subarray(offset + 4, offset + 4 + length + 16));
    parts.push(Buffer.from(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, sealed)));
    offset += 4 + length + 16;
    if (length === 0) {
      expect(offset).toBe(body.length);
      return Buffer.concat(parts);
    }
  }
}

async function openedCbc(body: Buffer): Promise<Buffer> {
  expect(body.toString('latin1', 0, 8)).toBe('Salted__');
  const raw = await derivedBits(body.subarray(8, 16), 10_000, 48);
  const key = await crypto.subtle.importKey('raw', Uint8Array.from(raw.subarray(0, 32)), 'AES-CBC', false, ['decrypt']);
  const algorithm = { name: 'AES-CBC', iv: Uint8Array.from(raw.subarray(32)) };
  return Buffer.from(await crypto.subtle.decrypt(algorithm, key, Uint8Array.from(body.subarray(16))));
}

describe('an independent reader', () => {
  const passphrase = new Passphrase(PASSPHRASE);
  const codec = createBodyCodec(passphrase);

  it('AR-54: opens a large body of ours', async () => {
    const content = Buffer.concat([generated('large', 150_000), Buffer.alloc(150_000, 'pattern')]);
    for (const body of [await codec.encode(content), await collected(codec.encodeStream(inPieces(content)))]) {
      expect(Buffer.compare(zstdDecompressSync(await openedGcm(Buffer.from(body))), content)).toBe(0);
    }
  });

  it('AR-54: opens a tar body of ours and finds its members', async () => {
    const contents = [Buffer.from('one'), Buffer.alloc(0), generated('member', 90_000)];
    const hasher = new Hasher(passphrase);
    const writer = new TarBundleWriter();
    const storing = collected(codec.encodeStream(writer.stream));
    for (const content of contents) {
      await writer.add(hasher.contentHash(content), content);
    }
    writer.finish();
    const extract = tar.extract();
    extract.end(zstdDecompressSync(await openedGcm(await storing)));
    const found: [string, string][] = [];
    for await (const entry of extract) {
      found.push([entry.header.name, (await collected(entry as AsyncIterable<Uint8Array>)).toString('hex')]);
    }
    expect(found).toEqual(contents.map((content) => [hasher.contentHash(content), content.toString('hex')]));
  });

  it('AR-54: opens the published legacy bodies to what ours opens them to', async () => {
    for (const { blobBase64, plaintextBase64 } of vectors('chunks-cbc-legacy.json').cases) {
      const opened = await openedCbc(base64(blobBase64));
      const plain = opened.length === 0 ? opened : gunzipSync(opened);
      expect(plain.toString('base64')).toBe(plaintextBase64);
      expect(Buffer.compare(await codec.decode(base64(blobBase64), 1000), plain)).toBe(0);
    }
  });
});
