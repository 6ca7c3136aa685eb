import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ArchiveContext } from '../../../src/agent/archive/archive-context.ts';
import { buildFiletrees } from '../../../src/agent/archive/filetree-builder.ts';
import { markKnownFiletrees } from '../../../src/agent/archive/known-filetrees.ts';
import type { RunDatabase } from '../../../src/agent/archive/run-database.ts';
import { uploadFiletrees } from '../../../src/agent/archive/upload-filetrees.ts';
import { HashCache } from '../../../src/agent/files/hash-cache.ts';
import { FiletreeReader } from '../../../src/agent/snapshots/filetree-reader.ts';
import type { SnapshotInfo } from '../../../src/contract/schemas.ts';
import type { FileTreeHash } from '../../../src/hashing/hashes.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { FILETREE_MEMORY_BYTES_MAX, FILETREE_UPLOAD_WORKERS } from '../../../src/limits.ts';
import type { FileTreeEntry } from '../../../src/repository/filetree.ts';
import { archiveContext } from '../support/archive-context.ts';
import { ConnectionCut, type FakeBlob, type FakeService } from '../support/fake-service.ts';
import { startFakeService, temporaryFolder } from '../support/run-command.ts';

/** `directories`: path → names of its files. A content is its name, so twins are equal. */
function fill(
  context: { run: RunDatabase; hasher: ArchiveContext['hasher'] },
  directories: Record<string, string[]>,
): void {
  const { run, hasher } = context;
  const ids = new Map<string, number>();
  const paths = Object.keys(directories).sort();
  const add = (path: string): void => {
    const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
    const id = run.addDirectory(
      path === '' ? null : (ids.get(parent) as number),
      path.slice(path.lastIndexOf('/') + 1),
    );
    ids.set(path, id);
    for (const name of directories[path] ?? []) {
      const content = hasher.contentHash(Buffer.from(name));
      run.setContent(content, 'stored');
      run.addFile({
        directoryId: id,
        name,
        sizeBytes: 1,
        createdTicks: 1n,
        modifiedTicks: 1n,
        content,
        state: 'hashed',
        attempts: 1,
        pointer: false,
      });
    }
    for (const child of paths) {
      if (child !== '' && (child.includes('/') ? child.slice(0, child.lastIndexOf('/')) : '') === path) {
        add(child);
      }
    }
    run.endDirectory(id);
  };
  add('');
}

async function build(context: ArchiveContext): Promise<FileTreeHash> {
  return (await buildFiletrees(context.run, context.hasher, context.signal)) as FileTreeHash;
}

function puts(service: FakeService): string[] {
  return service.requests.filter(({ kind }) => kind === 'put').map(({ name }) => name);
}

describe('uploadFiletrees', () => {
  it('FT-35, FT-76, FT-78: uploads every node under its hash, to the cool tier, with nothing but its body', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    fill(context, { '': ['r'], a: ['x'], 'a/b': ['y'], 'a/b/c': ['z'] });
    const root = await build(context);
    await uploadFiletrees(context);
    expect(service.names('filetrees/')).toHaveLength(4);
    expect(service.blobs.get(`filetrees/${root}`)).toMatchObject({
      metadata: {},
      tier: 'Cool',
      contentType: 'application/zstd',
    });
    expect(context.counters.filetreesUploaded).toBe(4);
  });

  it('FT-42: uploads one node for 24 identical folders, and one for their parent', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    fill(context, { '': [], ...Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`d${i}`, ['same']])) });
    await build(context);
    await uploadFiletrees(context);
    expect(puts(service)).toHaveLength(2);
  });

  it('FT-46, FT-43: keeps several uploads in flight, never more than its bound', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    let inFlight = 0;
    let most = 0;
    service.before = async ({ kind }) => {
      if (kind === 'put') {
        most = Math.max(most, ++inFlight);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inFlight--;
      }
    };
    fill(context, { '': [], ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`d${i}`, [`f${i}`]])) });
    await build(context);
    await uploadFiletrees(context);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(FILETREE_UPLOAD_WORKERS);
  });

  it('FT-63, FT-77: takes a node that is there for uploaded, and does not count it', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    fill(context, { '': ['r'], a: ['x'] });
    await build(context);
    await uploadFiletrees(context);
    const again = await archiveContext(service);
    fill(again.context, { '': ['r'], a: ['x'] });
    await build(again.context);
    await uploadFiletrees(again.context);
    expect(again.context.counters.filetreesUploaded).toBe(0);
    expect(service.names('filetrees/')).toHaveLength(2);
  });

  it('AR-19: survives a lost answer: the node is there, which is all that is wanted', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    let cuts = 3;
    service.after = ({ kind }) => {
      if (kind === 'put' && cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    fill(context, { '': ['r'], a: ['x'], b: ['y'] });
    await build(context);
    await uploadFiletrees(context);
    expect(service.names('filetrees/')).toHaveLength(3);
  });

  it('FT-47: fails when a node cannot be stored', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    fill(context, { '': ['r'], a: ['x'] });
    await build(context);
    service.intercept = (route) => (route === 'grants' ? { status: 403, body: problem('not-allowed') } : undefined);
    await expect(uploadFiletrees(context)).rejects.toMatchObject({ code: 'not-allowed' });
  });

  it('FT-61, FT-62: seals nodes: no name is readable in them, and the reader opens them', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service, { passphrase: new Passphrase('secret') });
    fill(context, { '': ['very-secret-name'] });
    const root = await build(context);
    await uploadFiletrees(context);
    const { body, contentType } = service.blobs.get(`filetrees/${root}`) as { body: Buffer; contentType: string };
    expect(body.subarray(0, 6).toString()).toBe('ArGCM1');
    expect(body.includes('very-secret-name')).toBe(false);
    expect(contentType).toBe('application/aes256gcm+zstd');
    expect((await readAll(context, root)).map(({ name }) => name)).toEqual(['very-secret-name']);
  });

  it('invariant 7: a folder of any size goes through the spool, in pages', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const names = Array.from({ length: 9000 }, (_, i) => `${String(i).padStart(6, '0')}-${'n'.repeat(20)}`);
    fill(context, { '': names });
    const root = await build(context);
    expect(context.run.directory(1).nodeBytes).toBeGreaterThan(FILETREE_MEMORY_BYTES_MAX);
    await uploadFiletrees(context);
    expect((await readAll(context, root)).map(({ name }) => name)).toEqual(names);
  });
});

describe('markKnownFiletrees', () => {
  const tree = { '': ['r'], a: ['x'], 'a/b': ['y'], 'a/b/c': ['z'], d: ['w'] };

  /** As it was when it was archived. */
  async function oldContext(service: FakeService): Promise<ArchiveContext> {
    const { context } = await archiveContext(service);
    fill(context, tree);
    await build(context);
    return context;
  }

  async function archived(service: FakeService): Promise<SnapshotInfo> {
    const { context } = await archiveContext(service);
    fill(context, tree);
    const rootHash = await build(context);
    await uploadFiletrees(context);
    return snapshotOf(rootHash);
  }

  it('FT-44: reads the old tree only where it differs, and uploads only the nodes on the way to a change', async () => {
    const service = await startFakeService();
    const newest = await archived(service);
    const { context } = await archiveContext(service);
    fill(context, { ...tree, d: ['w', 'new'] });
    await build(context);
    service.requests.length = 0;
    await mark(context, newest);
    expect(service.count('get')).toBe(2); // the root and d; a and all below it is known by its hash
    await uploadFiletrees(context);
    expect(puts(service)).toHaveLength(2);
  });

  it('FT-72: asks nothing when it remembers the nodes of that very snapshot', async () => {
    const service = await startFakeService();
    const newest = await archived(service);
    const { context } = await archiveContext(service);
    fill(context, { ...tree, d: ['w', 'new'] });
    await build(context);
    const cache = await openCache();
    const old = await oldContext(service);
    cache.rememberSnapshot('test:/folder', newest.name, old.run.nodeHashes());
    service.requests.length = 0;
    await mark(context, newest, cache);
    expect(service.requests).toEqual([]);
    await uploadFiletrees(context);
    expect(puts(service)).toHaveLength(2);
    cache.close();
  });

  it.each([
    ['lost', (service: FakeService, name: string) => void service.blobs.delete(name)],
    ['cut short', (service: FakeService, name: string) => damage(service, name, (body) => body.subarray(0, -1))],
    ['empty', (service: FakeService, name: string) => damage(service, name, () => Buffer.alloc(0))],
    ['not a body', (service: FakeService, name: string) => damage(service, name, () => Buffer.from('nothing'))],
    ['in the archive tier', (service: FakeService, name: string) => void service.archived.add(name)],
  ])('takes an old node that is %s, and what is below it, for not known', async (_what, spoil) => {
    for (const path of ['', 'a', 'a/b', 'a/b/c']) {
      const service = await startFakeService();
      const newest = await archived(service);
      spoil(service, `filetrees/${nodeAt(await oldContext(service), path)}`);
      const { context } = await archiveContext(service);
      fill(context, { ...tree, 'a/b/c': ['z', 'new'] });
      const root = await build(context);
      await mark(context, newest);
      // Only d is known, unless the root itself told of it.
      expect(context.run.directory(idOf(context, 'd')).present).toBe(path !== '');
      await uploadFiletrees(context);
      expect((await readAll(context, root)).map(({ name }) => name)).toEqual(['a', 'd', 'r']);
      for (const each of ['a', 'a/b', 'a/b/c']) {
        await readAll(context, nodeAt(context, each));
      }
    }
  });

  it('brings back what is lost below an old node that cannot be read', async () => {
    const service = await startFakeService();
    const newest = await archived(service);
    const old = await oldContext(service);
    service.blobs.delete(`filetrees/${nodeAt(old, 'a')}`);
    service.blobs.delete(`filetrees/${nodeAt(old, 'a/b/c')}`);
    const { context } = await archiveContext(service);
    fill(context, { ...tree, a: ['x', 'new'] });
    await build(context);
    await mark(context, newest);
    await uploadFiletrees(context);
    expect(await readAll(context, nodeAt(context, 'a/b/c'))).toHaveLength(1);
  });

  it('does not take a refusal of the service for a lost node', async () => {
    const service = await startFakeService();
    const newest = await archived(service);
    const { context } = await archiveContext(service);
    fill(context, { ...tree, d: ['w', 'new'] });
    await build(context);
    service.intercept = (route) => (route === 'grants' ? { status: 403, body: problem('not-allowed') } : undefined);
    await expect(mark(context, newest)).rejects.toMatchObject({ code: 'not-allowed' });
  });

  it('does not trust what it remembers of another snapshot', async () => {
    const service = await startFakeService();
    const newest = await archived(service);
    const { context } = await archiveContext(service);
    fill(context, { ...tree, d: ['w', 'new'] });
    await build(context);
    const cache = await openCache();
    cache.rememberSnapshot('test:/folder', 'another snapshot', context.run.nodeHashes());
    await mark(context, newest, cache);
    await uploadFiletrees(context);
    expect(puts(service).length).toBeGreaterThanOrEqual(2);
    expect(service.blobs.has(`filetrees/${context.run.directory(1).treeHash}`)).toBe(true);
    cache.close();
  });
});

function damage(service: FakeService, name: string, change: (body: Buffer) => Buffer): void {
  const blob = service.blobs.get(name) as FakeBlob;
  service.blobs.set(name, { ...blob, body: change(blob.body) });
}

function idOf({ run }: ArchiveContext, path: string): number {
  const segments = path === '' ? [] : path.split('/');
  return segments.reduce((id, segment) => run.childDirectory(id, segment) as number, 1);
}

function nodeAt(context: ArchiveContext, path: string): FileTreeHash {
  return context.run.directory(idOf(context, path)).treeHash as FileTreeHash;
}

async function openCache(): Promise<HashCache> {
  return HashCache.open(join(temporaryFolder(), 'c.sqlite'), { repository: 'default', passphraseFingerprint: 'p' });
}

async function mark(context: ArchiveContext, newest: SnapshotInfo, cache?: HashCache): Promise<void> {
  const used = cache ?? (await openCache());
  await markKnownFiletrees({
    run: context.run,
    newest,
    source: 'test:/folder',
    cache: used,
    reader: new FiletreeReader(context),
  });
  if (cache === undefined) {
    used.close();
  }
}

async function readAll(context: ArchiveContext, hash: FileTreeHash): Promise<FileTreeEntry[]> {
  const entries: FileTreeEntry[] = [];
  for await (const page of new FiletreeReader(context).read(hash)) {
    entries.push(...page);
  }
  return entries;
}

function snapshotOf(rootHash: string): SnapshotInfo {
  return {
    name: '2026-03-22T150000.000Z',
    timestamp: '2026-03-22T15:00:00.000Z',
    rootHash,
    fileCount: 1,
    originalSize: 1,
    ariusVersion: 'x',
    source: 'test:/folder',
    runId: null,
  };
}

function problem(code: string): unknown {
  return { type: 'x', title: 'x', status: 403, code, detail: 'No.', next: 'Stop.' };
}
