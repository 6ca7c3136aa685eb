import { mkdirSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { ArchiveContext, Carrier } from '../../../src/agent/archive/archive-context.ts';
import { type PackedTar, TarPacker } from '../../../src/agent/archive/pack.ts';
import { AriusError } from '../../../src/errors.ts';
import type { ContentHash } from '../../../src/hashing/hashes.ts';
import { SMALL_FILE_BYTES_MAX_EXCLUSIVE, TAR_MEMBERS_MAX, TAR_TARGET_BYTES } from '../../../src/limits.ts';
import { readTarBundle } from '../../../src/repository/tar-bundle.ts';
import { archiveContext } from '../support/archive-context.ts';
import { startFakeService } from '../support/run-command.ts';

interface Packing {
  readonly context: ArchiveContext;
  readonly reported: string[];
  readonly packer: TarPacker;
  readonly tars: PackedTar[];
  readonly spoolFolder: string;
  carrier(path: string, bytes: Uint8Array | string): Carrier;
}

async function packing(overrides: Partial<ArchiveContext> = {}): Promise<Packing> {
  const { context, reported, spoolFolder } = await archiveContext(await startFakeService(), { overrides });
  const directoryId = context.run.addDirectory(null, '');
  const tars: PackedTar[] = [];
  return {
    context,
    reported,
    tars,
    spoolFolder,
    packer: new TarPacker(context, async (tar) => {
      tars.push(tar);
    }),
    carrier(path, bytes) {
      mkdirSync(dirname(join(context.root, path)), { recursive: true });
      writeFileSync(join(context.root, path), bytes);
      const contentHash = context.hasher.contentHash(Buffer.from(bytes));
      const fileId = context.run.addFile({
        directoryId,
        name: path,
        sizeBytes: bytes.length,
        createdTicks: 1n,
        modifiedTicks: 1n,
        content: contentHash,
        state: 'hashed',
        attempts: 1,
        pointer: false,
      }) as number;
      context.run.setContent(contentHash, 'queued');
      return { fileId, path, sizeBytes: bytes.length, contentHash, attempts: 1 };
    },
  };
}

async function plainBytes(context: ArchiveContext, tar: PackedTar): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const bytes of context.codec.decodeStream(tar.body.open(), tar.tarBytes)) {
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}

async function members(context: ArchiveContext, tar: PackedTar): Promise<Map<ContentHash, string>> {
  const found = new Map<ContentHash, string>();
  for await (const member of readTarBundle(context.codec.decodeStream(tar.body.open(), tar.tarBytes))) {
    const parts: Uint8Array[] = [];
    for await (const bytes of member.body) {
      parts.push(bytes);
    }
    found.set(member.contentHash, Buffer.concat(parts).toString());
  }
  return found;
}

describe('TarPacker', () => {
  it('TB-01: accumulates files, named by their content hash, in the order they come', async () => {
    const { context, packer, tars, carrier } = await packing();
    const carriers = ['b', 'a', ''].map((text, index) => carrier(`f${index}`, text));
    for (const one of carriers) {
      await packer.add(one);
    }
    expect(tars).toEqual([]);
    await packer.seal();
    expect(tars).toHaveLength(1);
    expect([...(await members(context, tars[0] as PackedTar))]).toEqual([
      [carriers[0]?.contentHash, 'b'],
      [carriers[1]?.contentHash, 'a'],
      [carriers[2]?.contentHash, ''],
    ]);
    expect(tars[0]?.memberCount).toBe(3);
    expect(context.run.tarMembers.page(1, undefined, 10)).toHaveLength(3);
  });

  it('TB-02: seals a tar right after the member that brings its data to the target', async () => {
    const { packer, tars, carrier } = await packing();
    const size = SMALL_FILE_BYTES_MAX_EXCLUSIVE - 1;
    const needed = Math.ceil(TAR_TARGET_BYTES / size);
    for (let i = 0; i < needed; i++) {
      const bytes = Buffer.alloc(size);
      bytes.writeUInt32BE(i);
      await packer.add(carrier(`f${i}`, bytes));
      expect(tars).toHaveLength(i === needed - 1 ? 1 : 0);
    }
    expect(tars[0]?.memberCount).toBe(needed);
    await packer.seal();
    expect(tars).toHaveLength(1);
  });

  it('invariant 7: seals a tar early when it has many members', () => {
    // Its framing, at up to 1 KiB a member, stays within what readers decode.
    expect(TAR_MEMBERS_MAX * 1024 + TAR_TARGET_BYTES + SMALL_FILE_BYTES_MAX_EXCLUSIVE).toBeLessThan(512 * 2 ** 20);
  });

  it('TB-03: sealing without a member makes no tar', async () => {
    const { packer, tars } = await packing();
    await packer.seal();
    expect(tars).toEqual([]);
  });

  it('TB-04: is named by the hash of the whole tar', async () => {
    const { context, packer, tars, carrier } = await packing();
    await packer.add(carrier('a', 'aaa'));
    await packer.seal();
    const [tar] = tars as [PackedTar];
    const bytes = await plainBytes(context, tar);
    expect(tar.tarBytes).toBe(bytes.byteLength);
    expect(tar.chunkHash).toBe(context.hasher.chunkHash(bytes));
  });

  it('TB-05: the same files in the same order give the same tar', async () => {
    const hashes: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { packer, tars, carrier } = await packing();
      await packer.add(carrier('x', 'one'));
      await packer.add(carrier('y', 'two'));
      await packer.seal();
      hashes.push(tars[0]?.chunkHash ?? '');
    }
    expect(hashes[0]).toBe(hashes[1]);
  });

  it('TB-06: tells each tar once, with a number of its own', async () => {
    const { packer, tars, carrier } = await packing();
    for (const text of ['1', '2', '3']) {
      await packer.add(carrier(text, text));
      await packer.seal();
    }
    expect(tars.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(packer.nextId).toBe(4);
  });

  it.each([
    ['other bytes', 'xx'],
    ['fewer bytes', 'x'],
    ['more bytes', 'aaaa'],
  ])('never stores a file under an old hash: one with %s is left out and hashed again', async (_, changed) => {
    const { context, packer, tars, carrier, reported } = await packing();
    const stays = carrier('stays', 'stays');
    const changes = carrier('changes', 'aa');
    writeFileSync(join(context.root, 'changes'), changed);
    await packer.add(changes);
    await packer.add(stays);
    await packer.seal();
    expect([...(await members(context, tars[0] as PackedTar)).keys()]).toEqual([stays.contentHash]);
    expect(reported).toEqual(['changed changes']);
    expect(context.counters.filesChangedWhileReading).toBe(1);
    expect(context.run.filesAgain(0, 10).map(({ path }) => path)).toEqual(['changes']);
    expect(context.run.contentState(changes.contentHash)).toBe('lost');
  });

  it('reports a file that vanished, and goes on', async () => {
    const { context, packer, tars, carrier, reported } = await packing();
    const gone = carrier('gone', 'gone');
    unlinkSync(join(context.root, 'gone'));
    await packer.add(gone);
    await packer.seal();
    expect(tars).toEqual([]);
    expect(reported).toEqual(['failed gone']);
    expect(context.counters.filesFailed).toBe(1);
  });

  it('AR-20, TB-07: fails with the reason of the spool, and nothing waits', async () => {
    const full = new AriusError('disk-full', 'No space.', 'Make room.');
    const { packer, carrier } = await packing({
      spool: {
        write: vi.fn(async (source: AsyncIterable<Uint8Array>) => {
          for await (const _ of source) {
            throw full;
          }
          throw full;
        }),
      } as unknown as ArchiveContext['spool'],
    });
    const adding = (async () => {
      for (let i = 0; i < 50; i++) {
        await packer.add(carrier(`f${i}`, Buffer.alloc(300_000, i)));
      }
      await packer.seal();
    })();
    await expect(adding).rejects.toBe(full);
  });

  it('TB-07: fails with the reason of a spool that never reads', async () => {
    const full = new AriusError('disk-full', 'No space.', 'Make room.');
    const { packer, carrier } = await packing({
      spool: { write: () => Promise.reject(full) } as unknown as ArchiveContext['spool'],
    });
    await expect(packer.add(carrier('a', 'a'))).rejects.toBe(full);
  });

  it('TB-08: leaves nothing in the spool when it is abandoned', async () => {
    const { packer, tars, carrier, spoolFolder } = await packing();
    await packer.add(carrier('a', 'a'));
    expect(readdirSync(spoolFolder)).toHaveLength(1);
    await packer.abandon();
    expect(tars).toEqual([]);
    expect(readdirSync(spoolFolder)).toEqual([]);
  });
});
