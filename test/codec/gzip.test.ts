import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ByteReader } from '../../src/codec/byte-reader.ts';
import { BodyCorruptError } from '../../src/codec/errors.ts';
import { gunzipStream } from '../../src/codec/gzip.ts';
import { collected, generated, inPieces, withFlippedBit } from '../support/bytes.ts';

const content = Buffer.from('legacy content, legacy content, legacy content\n'.repeat(50));
const member = gzipSync(content);

function gunzipped(bytes: Uint8Array, limit = 1e9, pieceBytes = 65_536): Promise<Buffer> {
  return collected(gunzipStream(new ByteReader(inPieces(bytes, pieceBytes)), limit));
}

/** The member with optional header fields put in behind the fixed header. */
function withFields(flags: number, fields: Uint8Array): Buffer {
  const header = Buffer.from(member.subarray(0, 10));
  header[3] = flags;
  return Buffer.concat([header, fields, member.subarray(10)]);
}

describe('gunzipStream', () => {
  it('reads gzip, small and over many pieces', async () => {
    const big = generated('gzip', 1_000_000);
    for (const pieceBytes of [1, 9, 1000]) {
      expect(Buffer.compare(await gunzipped(member, 1e9, pieceBytes), content)).toBe(0);
    }
    expect(Buffer.compare(await gunzipped(gzipSync(big), big.length, 65_536), big)).toBe(0);
    expect((await gunzipped(gzipSync(Buffer.alloc(0)), 0)).length).toBe(0);
  });

  it('reads past every optional header field', async () => {
    const extra = Buffer.from([3, 0, 1, 2, 3]);
    const name = Buffer.from('name\0');
    expect(Buffer.compare(await gunzipped(withFields(4, extra)), content)).toBe(0);
    expect(Buffer.compare(await gunzipped(withFields(8, name)), content)).toBe(0);
    expect(Buffer.compare(await gunzipped(withFields(16, name)), content)).toBe(0);
    expect(Buffer.compare(await gunzipped(withFields(2, Buffer.alloc(2))), content)).toBe(0);
    const all = Buffer.concat([extra, name, name, Buffer.alloc(2)]);
    expect(Buffer.compare(await gunzipped(withFields(30, all)), content)).toBe(0);
  });

  it.each([
    ['one more byte', Buffer.from([0])],
    ['eight zeros', Buffer.alloc(8)],
    ['a second member', member],
    ['a lot of junk', generated('junk', 300_000)],
  ])('rejects %s behind the member', async (_, behind) => {
    for (const pieceBytes of [1000, 1_000_000]) {
      await expect(gunzipped(Buffer.concat([member, behind]), 1e9, pieceBytes)).rejects.toBeInstanceOf(
        BodyCorruptError,
      );
    }
  });

  it('rejects a wrong checksum, a wrong size, another method and reserved flags', async () => {
    for (const offset of [member.length - 8, member.length - 1, 2, 3]) {
      await expect(gunzipped(withFlippedBit(member, offset * 8 + 7))).rejects.toBeInstanceOf(BodyCorruptError);
    }
  });

  it('rejects a header that does not end', async () => {
    await expect(gunzipped(withFields(8, Buffer.alloc(70_000, 'x')))).rejects.toThrow(/does not end/);
  });

  it('rejects a member cut at any length', async () => {
    for (let length = 0; length < member.length; length += 1) {
      await expect(gunzipped(member.subarray(0, length))).rejects.toBeInstanceOf(BodyCorruptError);
    }
  });

  it('counts against the limit', async () => {
    await expect(gunzipped(member, content.length - 1)).rejects.toThrow(/bytes allowed/);
  });
});
