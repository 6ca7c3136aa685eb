import { appendFile, chmod, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasTreeTimes, signalsOf, treeTimes } from '../../../src/agent/files/file-signals.ts';
import { HashCache } from '../../../src/agent/files/hash-cache.ts';
import { FileHasher, type HashFilesOptions } from '../../../src/agent/files/hash-files.ts';
import { FileSystems } from '../../../src/agent/files/network-filesystem.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { CHANGED_FILE_ATTEMPTS_MAX } from '../../../src/limits.ts';
import { temporaryFolder } from '../support/run-command.ts';
import { asOrdinaryUser } from '../support/unprivileged.ts';

interface Setup {
  readonly path: string;
  readonly hasher: FileHasher;
  readonly bytesRead: () => number;
  readonly reads: () => number;
}

const LATER_NS = 3_600_000_000_000n;

async function setup(
  content: string | Buffer,
  options: Partial<HashFilesOptions> & { network?: boolean } = {},
): Promise<Setup> {
  const folder = temporaryFolder();
  const path = join(folder, 'file');
  await writeFile(path, content);
  let reads = 0;
  let bytesRead = 0;
  const cache = await HashCache.open(join(folder, 'cache.sqlite'), { repository: 'r', passphraseFingerprint: 'p' });
  const { network = false, afterRead, ...rest } = options;
  const hasher = new FileHasher({
    hasher: new Hasher(),
    cache,
    fileSystems: new FileSystems(async () => network),
    mode: 'changed',
    signal: new AbortController().signal,
    // Far from the change, so that the cache may be believed.
    nowNs: () => BigInt(Date.now()) * 1_000_000n + LATER_NS,
    onBytes: (bytes) => {
      bytesRead += bytes;
    },
    afterRead: async (file) => {
      reads++;
      cache.flush();
      await afterRead?.(file);
    },
    ...rest,
  });
  const flushing = Object.assign(Object.create(hasher) as FileHasher, {
    async hash(file: string, signals: Parameters<FileHasher['hash']>[1], attempts?: number) {
      const outcome = await hasher.hash(file, signals, attempts);
      cache.flush();
      return outcome;
    },
  });
  return { path, hasher: flushing, bytesRead: () => bytesRead, reads: () => reads };
}

const look = async (path: string): Promise<ReturnType<typeof signalsOf>> =>
  signalsOf(await stat(path, { bigint: true }));

describe('FileHasher', () => {
  it('hashes the bytes with the salt of the repository, and tells what it saw before it read', async () => {
    const passphrase = new Passphrase('secret');
    const { path, hasher } = await setup('hello', { hasher: new Hasher(passphrase) });
    const signals = await look(path);
    expect(await hasher.hash(path, signals)).toEqual({
      kind: 'hashed',
      contentHash: new Hasher(passphrase).contentHash(Buffer.from('hello')),
      signals,
      attempts: 1,
      changed: false,
    });
  });

  it('AR-24: does not read an unchanged file again', async () => {
    const { path, hasher, reads, bytesRead } = await setup('hello');
    const first = await hasher.hash(path, await look(path));
    const second = await hasher.hash(path, await look(path));
    expect(second).toEqual(first);
    expect(reads()).toBe(1);
    expect(bytesRead()).toBe(10); // the second time counts as done, too
  });

  it.each([
    ['content', (path: string) => writeFile(path, 'HELLO')],
    ['modification time', (path: string) => utimes(path, 1, 1)],
    ['mode, which moves the change time', (path: string) => chmod(path, 0o600)],
    [
      'inode',
      async (path: string) => {
        await writeFile(`${path}.new`, 'hello');
        await rename(`${path}.new`, path);
      },
    ],
  ])('reads again after a change of %s', async (_, change) => {
    const { path, hasher, reads } = await setup('hello');
    await hasher.hash(path, await look(path));
    await change(path);
    await hasher.hash(path, await look(path));
    expect(reads()).toBe(2);
  });

  it('reads again when asked to, on a network file system, and when the change is too fresh', async () => {
    for (const options of [
      { mode: 'all' as const },
      { network: true },
      { nowNs: () => BigInt(Date.now()) * 1_000_000n },
    ]) {
      const { path, hasher, reads } = await setup('hello', options);
      await hasher.hash(path, await look(path));
      await hasher.hash(path, await look(path));
      expect(reads()).toBe(2);
    }
  });

  it('AR-25: hashes in full when the cache is gone', async () => {
    const one = await setup('hello');
    await one.hasher.hash(one.path, await look(one.path));
    const two = await setup('hello');
    await two.hasher.hash(two.path, await look(two.path));
    expect(two.reads()).toBe(1);
  });

  it('believes the fingerprint of a large file only with --fast-hash', async () => {
    const content = Buffer.alloc(1_500_000, 'x');
    for (const [mode, reads] of [
      ['fast', 1],
      ['changed', 2],
    ] as const) {
      const run = await setup(content, { mode });
      const first = await run.hasher.hash(run.path, await look(run.path));
      await chmod(run.path, 0o600);
      const second = await run.hasher.hash(run.path, await look(run.path));
      expect(second).toMatchObject({ contentHash: (first as { contentHash: string }).contentHash });
      expect(run.reads()).toBe(reads);
    }
  });

  it('does not believe the fingerprint when a sample or the size has changed', async () => {
    const content = Buffer.alloc(1_500_000, 'x');
    const { path, hasher } = await setup(content, { mode: 'fast' });
    await hasher.hash(path, await look(path));
    content[0] = 0;
    await writeFile(path, content);
    expect(await hasher.hash(path, await look(path))).toMatchObject({
      contentHash: new Hasher().contentHash(content),
    });
    await appendFile(path, 'y');
    expect(await hasher.hash(path, await look(path))).toMatchObject({
      contentHash: new Hasher().contentHash(Buffer.concat([content, Buffer.from('y')])),
    });
  });

  it('hashes again when the file changed while it was read, and tells so', async () => {
    let edits = 0;
    const { path, hasher } = await setup('hello', {
      afterRead: async (file) => {
        if (edits++ === 0) {
          await writeFile(file, 'changed');
        }
      },
    });
    expect(await hasher.hash(path, await look(path))).toMatchObject({
      kind: 'hashed',
      contentHash: new Hasher().contentHash(Buffer.from('changed')),
      attempts: 2,
      changed: true,
    });
  });

  it('gives up on a file that never stands still', async () => {
    const { path, hasher, reads } = await setup('hello', { afterRead: (file) => appendFile(file, 'x') });
    expect(await hasher.hash(path, await look(path))).toMatchObject({ kind: 'failed', changed: true });
    expect(reads()).toBe(CHANGED_FILE_ATTEMPTS_MAX);
    expect(await hasher.hash(path, undefined, CHANGED_FILE_ATTEMPTS_MAX)).toMatchObject({ kind: 'failed' });
  });

  it('AR-22: reports a file that vanished or may not be read, and does not throw', async () => {
    const gone = await setup('hello');
    const signals = await look(gone.path);
    await unlink(gone.path);
    expect(await gone.hasher.hash(gone.path, signals)).toMatchObject({
      kind: 'failed',
      why: 'it vanished before it could be read',
    });
    const secret = await setup('hello');
    const before = await look(secret.path);
    await chmod(secret.path, 0o000);
    const outcome = await asOrdinaryUser([join(secret.path, '..')], () => secret.hasher.hash(secret.path, before));
    expect(outcome).toMatchObject({ kind: 'failed', why: 'this user may not read it' });
  });

  it('reads the hash in a pointer file', async () => {
    const hash = 'ab'.repeat(32);
    const good = await setup(hash.toUpperCase());
    expect(await good.hasher.pointer(good.path)).toBe(hash);
    const bad = await setup('not a hash');
    expect(await bad.hasher.pointer(bad.path)).toBeUndefined();
    const long = await setup(Buffer.alloc(10_000, 'a'));
    expect(await long.hasher.pointer(long.path)).toBeUndefined();
  });
});

describe('treeTimes', () => {
  it('AR-14: creates by the older of the two times there are, both cut to 100 ns', () => {
    const base = { sizeBytes: 0, inode: 1n, device: 1n };
    expect(treeTimes({ ...base, mtimeNs: 1_000_000_199n, ctimeNs: 2_000_000_299n })).toEqual({
      createdTicks: 10_000_001n,
      modifiedTicks: 10_000_001n,
    });
    expect(treeTimes({ ...base, mtimeNs: 5_000_000_000n, ctimeNs: 2_000_000_299n })).toEqual({
      createdTicks: 20_000_002n,
      modifiedTicks: 50_000_000n,
    });
  });

  it('knows the times that a tree cannot hold', () => {
    const base = { sizeBytes: 0, inode: 1n, device: 1n };
    const second = 1_000_000_000n;
    expect(hasTreeTimes({ ...base, mtimeNs: 0n, ctimeNs: 0n })).toBe(true);
    expect(hasTreeTimes({ ...base, mtimeNs: -62_135_596_800n * second, ctimeNs: 0n })).toBe(true);
    expect(hasTreeTimes({ ...base, mtimeNs: -62_135_596_801n * second, ctimeNs: 0n })).toBe(false);
    expect(hasTreeTimes({ ...base, mtimeNs: 253_402_300_800n * second, ctimeNs: 0n })).toBe(false);
    expect(hasTreeTimes({ ...base, mtimeNs: 2n ** 80n, ctimeNs: 0n })).toBe(false);
  });
});
