import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import tar, { type Header } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Hasher } from '../../src/hashing/hasher.ts';
import { type ContentHash, parseContentHash } from '../../src/hashing/hashes.ts';
import { readTarBundle, TarBundleWriter } from '../../src/repository/tar-bundle.ts';
import { base64, collected, generated, inPieces, passphraseOf, sha256, vectors } from '../support/bytes.ts';

interface Member {
  readonly contentHash: ContentHash;
  readonly bytes: Buffer;
}

const hasher = new Hasher();

function member(bytes: Uint8Array): Member {
  return { contentHash: hasher.contentHash(bytes), bytes: Buffer.from(bytes) };
}

async function written(members: readonly Member[]): Promise<Buffer> {
  const writer = new TarBundleWriter();
  const bundle = collected(writer.stream);
  for (const { contentHash, bytes } of members) {
    await writer.add(contentHash, bytes);
  }
  writer.finish();
  return bundle;
}

async function readAll(bundle: Uint8Array, pieceBytes = 65_536): Promise<Member[]> {
  const members: Member[] = [];
  for await (const { contentHash, sizeBytes, body } of readTarBundle(inPieces(bundle, pieceBytes))) {
    const bytes = await collected(body);
    expect(bytes.length).toBe(sizeBytes);
    members.push({ contentHash, bytes });
  }
  return members;
}

const three = [member(Buffer.from('alpha\n')), member(Buffer.alloc(0)), member(generated('tar', 1500))];

describe('the published tar bundles', () => {
  it.each(
    vectors('tar-chunks.json').cases as {
      flavour: string;
      passphrase: string | null;
      entries: { name: string; size: number; dataBase64: string }[];
      tarLength: number;
      tarSha256: string;
      tarChunkHash: string;
      chunkSize: number;
      blobBase64: string;
    }[],
  )('AR-53: $flavour, passphrase $passphrase', async (vector) => {
    const passphrase = passphraseOf(vector.passphrase);
    const codec = createBodyCodec(passphrase);
    const body = base64(vector.blobBase64);
    expect(body.length).toBe(vector.chunkSize);
    const bundle = await collected(codec.decodeStream(inPieces(body, 100), vector.tarLength));
    expect(bundle.length).toBe(vector.tarLength);
    expect(sha256(bundle)).toBe(vector.tarSha256);
    expect(new Hasher(passphrase).chunkHash(bundle)).toBe(vector.tarChunkHash);
    const members = await readAll(bundle);
    expect(
      members.map(({ contentHash, bytes }) => ({
        name: contentHash,
        size: bytes.length,
        dataBase64: bytes.toString('base64'),
      })),
    ).toEqual(vector.entries.map(({ name, size, dataBase64 }) => ({ name, size, dataBase64: dataBase64 ?? '' })));
  });
});

describe('TarBundleWriter', () => {
  it('TB-01, TB-04: gives back any members in order, and counts them; the hash is over the whole tar', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 2000 }),
      fc.constantFrom(0, 511, 512, 513, 5000).map((length) => Buffer.alloc(length, 'x')),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(bytes), fc.integer({ min: 40, max: 3000 }), async (contents, pieceBytes) => {
        const members = contents.map(member);
        const bundle = await written(members);
        expect(bundle.length % 512).toBe(0);
        const read = await readAll(bundle, pieceBytes);
        expect(read.map((each) => each.contentHash)).toEqual(members.map((each) => each.contentHash));
        // Of what was read, not of the name: each member's bytes are those of its own name.
        expect(read.every((each) => hasher.contentHash(each.bytes) === each.contentHash)).toBe(true);
        const running = hasher.start();
        running.update(bundle);
        expect(running.digest()).toBe(hasher.chunkHash(bundle));
      }),
      { numRuns: 60 },
    );
  });

  it('TB-01: counts data and members', async () => {
    const writer = new TarBundleWriter();
    const bundle = collected(writer.stream);
    expect([writer.dataBytes, writer.memberCount]).toEqual([0, 0]);
    for (const { contentHash, bytes } of three) {
      await writer.add(contentHash, bytes);
    }
    expect([writer.dataBytes, writer.memberCount]).toEqual([1506, 3]);
    writer.finish();
    expect((await bundle).length).toBe(512 * (1 + 1 + 1 + 1 + 3 + 2));
  });

  it('writes the same bytes for the same members', async () => {
    expect(sha256(await written(three))).toBe(sha256(await written(three)));
    // Pinned: a change here would make every bundle of every repository be stored again.
    expect(sha256(await written(three))).toBe('e62de535c80caa8d93a25a66efe387cf761e06ca4f2f49b006e29e6f048dbafe');
  });

  it('is listed and unpacked by the system’s tar', async ({ skip }) => {
    skip(!hasTar(), 'no tar command here');
    const directory = mkdtempSync(join(tmpdir(), 'tar-bundle-'));
    try {
      const path = join(directory, 'bundle.tar');
      writeFileSync(path, await written(three));
      const listed = execFileSync('tar', ['-tvf', path], { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } });
      expect(
        listed
          .trim()
          .split('\n')
          .map((line) => line.split(/\s+/).at(-1)),
      ).toEqual(three.map((each) => each.contentHash));
      for (const { contentHash, bytes } of three) {
        expect(Buffer.compare(execFileSync('tar', ['-xOf', path, contentHash]), bytes)).toBe(0);
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('is read by another implementation', async () => {
    const extract = tar.extract();
    const found: Member[] = [];
    const feeding = (async () => {
      extract.end(await written(three));
    })();
    for await (const entry of extract) {
      expect(entry.header).toMatchObject({ type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), pax: null });
      found.push({ contentHash: parseContentHash(entry.header.name), bytes: await collected(bytesOf(entry)) });
    }
    await feeding;
    expect(found).toEqual(three);
  });

  it('waits for its reader, member by member', async () => {
    const writer = new TarBundleWriter();
    const order: string[] = [];
    const adding = (async () => {
      for (const { contentHash, bytes } of three) {
        await writer.add(contentHash, bytes);
        order.push('added');
      }
      writer.finish();
    })();
    for await (const piece of writer.stream) {
      order.push(`${piece.length}`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await adding;
    expect(order).toEqual(['512', '6', '506', 'added', '512', 'added', '512', '1500', '36', 'added', '1024']);
  });

  it('TB-08: fails a waiting add when the reader stops, or when it is abandoned before it began', async () => {
    const stopped = new TarBundleWriter();
    const adding = stopped.add(parseContentHash('ab'.repeat(32)), Buffer.alloc(10));
    for await (const piece of stopped.stream) {
      expect(piece.length).toBe(512);
      break;
    }
    await expect(adding).rejects.toThrow(/no longer being read/);
    await expect(stopped.add(parseContentHash('ab'.repeat(32)), Buffer.alloc(10))).rejects.toThrow(/abandoned/);

    const abandoned = new TarBundleWriter();
    const waiting = abandoned.add(parseContentHash('ab'.repeat(32)), Buffer.alloc(10));
    abandoned.abandon();
    await expect(waiting).rejects.toThrow(/no longer being read/);
    await expect(collected(abandoned.stream)).rejects.toThrow(/abandoned/);
  });

  it('takes nothing after its end', async () => {
    const writer = new TarBundleWriter();
    const bundle = collected(writer.stream);
    writer.finish();
    expect(() => writer.finish()).toThrow(/finished/);
    await expect(writer.add(parseContentHash('ab'.repeat(32)), Buffer.alloc(1))).rejects.toThrow(/finished/);
    expect((await bundle).length).toBe(1024);
  });
});

describe('readTarBundle', () => {
  it('rejects a bundle cut at any length', async () => {
    const bundle = await written(three);
    for (let length = 0; length < bundle.length; length += length % 512 === 0 || length % 512 === 511 ? 1 : 15) {
      await expect(readAll(bundle.subarray(0, length))).rejects.toMatchObject({ code: 'blob-corrupt' });
    }
  });

  it('is not deceived by members that end in zeros', async () => {
    const bundle = await written([member(Buffer.alloc(4096))]);
    for (let length = 512; length < bundle.length; length += 512) {
      await expect(readAll(bundle.subarray(0, length))).rejects.toMatchObject({ code: 'blob-corrupt' });
    }
  });

  it('accepts zeros behind the end and nothing else', async () => {
    const bundle = await written(three);
    expect(await readAll(Buffer.concat([bundle, Buffer.alloc(9000)]))).toEqual(three);
    await expect(readAll(Buffer.concat([bundle, bundle]))).rejects.toThrow(/follows its end/);
    await expect(readAll(Buffer.concat([bundle, Buffer.alloc(9000), Buffer.from('x')]))).rejects.toThrow(
      /follows its end/,
    );
  });

  it('skips what the reader of a member leaves, and hands out no body twice', async () => {
    const seen: string[] = [];
    let first: AsyncIterable<Uint8Array> | undefined;
    for await (const { contentHash, body } of readTarBundle(inPieces(await written(three), 100))) {
      seen.push(contentHash);
      first ??= body;
    }
    expect(seen).toEqual(three.map((each) => each.contentHash));
    await expect(collected(first as AsyncIterable<Uint8Array>)).rejects.toThrow(/has been passed/);
  });

  it('drains its source, so that the source’s own checks run', async () => {
    async function* failingAtEnd(bundle: Uint8Array): AsyncGenerator<Uint8Array> {
      yield bundle;
      throw new Error('checksum');
    }
    const bundle = await written(three);
    const reading = async (): Promise<void> => {
      for await (const each of readTarBundle(failingAtEnd(bundle))) {
        expect(each.sizeBytes).toBeLessThan(2000);
      }
    };
    await expect(reading()).rejects.toThrow('checksum');
  });

  it.each<[string, Partial<Header> & Pick<Header, 'name'>]>([
    ['a name that is not a hash', { name: 'photo.jpg' }],
    ['a path', { name: `dir/${'ab'.repeat(32)}` }],
    ['a directory', { name: 'ab'.repeat(32), type: 'directory' }],
    ['a link', { name: 'ab'.repeat(32), type: 'symlink', linkname: 'x' }],
    ['a pax name that is not a hash', { name: 'ab'.repeat(32), pax: { path: 'photo.jpg' } }],
  ])('rejects %s', async (_, header) => {
    const pack = tar.pack();
    if (header.type === undefined) {
      pack.entry(header, '');
    } else {
      pack.entry(header);
    }
    pack.finalize();
    const bundle = await collected(bytesOf(pack));
    await expect(readAll(bundle)).rejects.toMatchObject({ code: 'blob-corrupt' });
  });

  it('rejects a header with any bit flipped', async () => {
    const bundle = await written([member(Buffer.from('alpha\n'))]);
    for (let bit = 0; bit < 512 * 8; bit += 1) {
      const flipped = Buffer.from(bundle);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const outcome = await readAll(flipped).catch((error: unknown) => error);
      // A flip in the checksum's own padding leaves the number as it is.
      if (Array.isArray(outcome)) {
        expect(outcome).toEqual([member(Buffer.from('alpha\n'))]);
      } else {
        expect(outcome).toMatchObject({ code: 'blob-corrupt' });
      }
    }
  });

  it('rejects damaged extended headers', async () => {
    for (const records of ['27 path=short\n', 'x path=y\n', '5 path', '4294967296 path=x\n', '3 a']) {
      const pack = tar.pack();
      pack.entry({ name: 'pax', type: 'file' }, records);
      pack.finalize();
      const bundle = await collected(bytesOf(pack));
      bundle.write('x', 156, 'latin1');
      const sum = checksumOf(bundle.subarray(0, 512));
      bundle.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
      await expect(readAll(bundle)).rejects.toThrow(/extended header/);
    }
  });
});

/** tar-stream's own streams do not say what they hold. */
function bytesOf(stream: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  return stream as AsyncIterable<Uint8Array>;
}

function checksumOf(header: Uint8Array): number {
  return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 32 : byte), 0);
}

function hasTar(): boolean {
  try {
    execFileSync('tar', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
