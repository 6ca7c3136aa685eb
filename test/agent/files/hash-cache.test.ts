import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import type { FileSignals } from '../../../src/agent/files/file-signals.ts';
import { type CachedHash, HashCache, isUnchanged } from '../../../src/agent/files/hash-cache.ts';
import { parseContentHash, parseFileTreeHash } from '../../../src/hashing/hashes.ts';
import { AGENT_DATABASE_BATCH } from '../../../src/limits.ts';
import { temporaryFolder } from '../support/run-command.ts';

const SECOND = 1_000_000_000n;
const signals: FileSignals = {
  sizeBytes: 10,
  mtimeNs: 1_700_000_000n * SECOND + 123n,
  ctimeNs: 1_700_000_001n * SECOND + 456n,
  inode: 2n ** 62n + 1n,
  device: 7n,
};
const entry: CachedHash = {
  contentHash: parseContentHash('ab'.repeat(32)),
  signals,
  hashedAtNs: signals.ctimeNs + 10n * SECOND,
  fingerprint: 'cd'.repeat(32),
};
const scope = { repository: 'default', passphraseFingerprint: 'f1' };

const cachePath = (): string => join(temporaryFolder(), 'sub', 'hash-cache.sqlite');

describe('HashCache', () => {
  it('remembers across processes, to the last digit', async () => {
    const path = cachePath();
    const first = await HashCache.open(path, scope);
    first.put('/a', entry);
    first.put('/b', { ...entry, fingerprint: undefined });
    first.close();
    const second = await HashCache.open(path, scope);
    expect(second.get('/a')).toEqual(entry);
    expect(second.get('/b')).toEqual({ ...entry, fingerprint: undefined });
    expect(second.get('/c')).toBeUndefined();
    second.close();
  });

  it('keeps repositories and passphrases apart: a hash is salted', async () => {
    const path = cachePath();
    const one = await HashCache.open(path, scope);
    one.put('/a', entry);
    one.flush();
    for (const other of [
      { ...scope, repository: 'other' },
      { ...scope, passphraseFingerprint: 'f2' },
    ]) {
      const cache = await HashCache.open(path, other);
      expect(cache.get('/a')).toBeUndefined();
      cache.close();
    }
    one.close();
  });

  it('replaces what it knew of a path', async () => {
    const cache = await HashCache.open(cachePath(), scope);
    cache.put('/a', entry);
    const newer = { ...entry, contentHash: parseContentHash('ef'.repeat(32)) };
    cache.put('/a', newer);
    cache.flush();
    expect(cache.get('/a')).toEqual(newer);
    cache.close();
  });

  it('writes in batches', async () => {
    const cache = await HashCache.open(cachePath(), scope);
    for (let i = 0; i < AGENT_DATABASE_BATCH - 1; i++) {
      cache.put(`/${i}`, entry);
    }
    expect(cache.get('/0')).toBeUndefined();
    cache.put('/last', entry);
    expect(cache.get('/0')).toEqual(entry);
    cache.close();
  });

  it.each([
    ['a damaged file', (path: string) => writeFileSync(path, 'this is no database, but it is long enough to look at')],
    [
      'a file whose pages are damaged',
      (path: string) => {
        const bytes = readFileSync(path);
        bytes.fill(0x5a, 100);
        writeFileSync(path, bytes);
      },
    ],
    [
      'a file of another version',
      (path: string) => {
        const db = new DatabaseSync(path);
        db.exec('PRAGMA user_version = 999');
        db.close();
      },
    ],
  ])('starts anew with %s: nothing in it is irreplaceable', async (_, damage) => {
    const path = cachePath();
    const before = await HashCache.open(path, scope);
    before.put('/a', entry);
    before.close();
    damage(path);
    const after = await HashCache.open(path, scope);
    expect(after.get('/a')).toBeUndefined();
    after.put('/a', entry);
    after.flush();
    expect(after.get('/a')).toEqual(entry);
    after.close();
  });

  it('serves two runs at a time', async () => {
    const path = cachePath();
    const one = await HashCache.open(path, scope);
    const two = await HashCache.open(path, scope);
    one.put('/one', entry);
    two.put('/two', entry);
    one.flush();
    two.flush();
    expect(one.get('/two')).toEqual(entry);
    expect(two.get('/one')).toEqual(entry);
    one.close();
    two.close();
    expect(existsSync(path)).toBe(true);
  });

  it('knows the nodes of exactly the snapshot it remembered last for a source', async () => {
    const cache = await HashCache.open(cachePath(), scope);
    const [a, b] = [parseFileTreeHash('aa'.repeat(32)), parseFileTreeHash('bb'.repeat(32))];
    cache.rememberSnapshot('nas:/photos', 'first', [a, b, a]);
    cache.rememberSnapshot('nas:/music', 'other', [b]);
    expect(cache.snapshotNodes('nas:/photos', 'first')?.(a)).toBe(true);
    cache.rememberSnapshot('nas:/photos', 'second', [b]);
    expect(cache.snapshotNodes('nas:/photos', 'first')).toBeUndefined();
    const known = cache.snapshotNodes('nas:/photos', 'second');
    expect([known?.(a), known?.(b)]).toEqual([false, true]);
    cache.close();
  });
});

describe('isUnchanged', () => {
  it('believes a hash only when size, times, inode and device are all the same', () => {
    expect(isUnchanged(entry, signals)).toBe(true);
    expect(isUnchanged(entry, { ...signals, sizeBytes: 11 })).toBe(false);
    for (const key of ['mtimeNs', 'ctimeNs', 'inode', 'device'] as const) {
      expect(isUnchanged(entry, { ...signals, [key]: signals[key] + 1n })).toBe(false);
      expect(isUnchanged(entry, { ...signals, [key]: signals[key] - 1n })).toBe(false);
    }
  });

  it('does not believe a hash taken within two seconds of the last change, when a clock tick could hide an edit', () => {
    expect(isUnchanged({ ...entry, hashedAtNs: signals.ctimeNs + 2n * SECOND }, signals)).toBe(false);
    expect(isUnchanged({ ...entry, hashedAtNs: signals.ctimeNs + 2n * SECOND + 1n }, signals)).toBe(true);
    expect(isUnchanged({ ...entry, hashedAtNs: signals.ctimeNs - 5n * SECOND }, signals)).toBe(false);
  });
});
