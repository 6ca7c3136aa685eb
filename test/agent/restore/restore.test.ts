import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import type { ContentHash, FileTreeHash } from '../../../src/hashing/hashes.ts';
import { type FileTreeEntry, serializeFileTree } from '../../../src/repository/filetree.ts';
import { TarBundleWriter } from '../../../src/repository/tar-bundle.ts';
import { ConnectionCut, type FakeBlob, type FakeService } from '../support/fake-service.ts';
import {
  type CommandResult,
  startFakeService,
  type TestAgent,
  temporaryFolder,
  testAgent,
} from '../support/run-command.ts';
import { asOrdinaryUser } from '../support/unprivileged.ts';

const LARGE = Buffer.alloc(1_100_000, 'l');
const hasher = new Hasher();
const codec = createBodyCodec(undefined);

interface Setup {
  readonly service: FakeService;
  readonly agent: TestAgent;
  readonly folder: string;
  /** Does not exist yet. */
  readonly target: string;
  restore(...argv: string[]): Promise<CommandResult>;
}

async function archived(files: Record<string, string | Buffer>): Promise<Setup> {
  const service = await startFakeService();
  const agent = testAgent(service);
  const folder = temporaryFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 0 });
  service.requests.length = 0;
  const target = join(temporaryFolder(), 'target');
  return { service, agent, folder, target, restore: (...argv) => agent.run(['restore', target, ...argv]) };
}

function diff(a: string, b: string): string {
  return execFileSync('diff', ['-r', a, b]).toString();
}

function warnings({ lines }: CommandResult): Record<string, unknown>[] {
  return lines.filter(({ messageType }) => messageType === 'warning');
}

/** Puts a tree that no agent would write into the service, as its newest snapshot. */
async function publishTree(service: FakeService, entries: readonly FileTreeEntry[]): Promise<void> {
  const text = serializeFileTree(entries);
  const rootHash = hasher.fileTreeHash(text);
  const body = Buffer.from(await codec.encode(text));
  service.blobs.set(`filetrees/${rootHash}`, { body, metadata: {}, tier: 'Cool', contentType: '' });
  service.snapshots.push({
    name: '2027-01-01T000000.000Z',
    timestamp: '2027-01-01T00:00:00.000Z',
    rootHash,
    fileCount: entries.length,
    originalSize: 0,
    ariusVersion: 'x',
    source: service.snapshots[0]?.source ?? null,
    runId: null,
  });
}

function fileEntry(name: string, contentHash: string): FileTreeEntry {
  return { kind: 'file', name, contentHash: contentHash as ContentHash, createdTicks: 1n, modifiedTicks: 1n };
}

describe('restore', () => {
  it('RS-04, RS-16: restores everything, identical in bytes', async () => {
    const { folder, target, restore } = await archived({ a: 'a', 'b/c': 'c', 'b/d/large': LARGE, 'b/empty': '' });
    const { exitCode, summary, stderr } = await restore();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(summary).toMatchObject({
      command: 'restore',
      filesRestored: 4,
      filesIdentical: 0,
      filesKept: 0,
      filesFailed: 0,
      bytesRestored: LARGE.length + 2,
      chunksPending: 0,
      bytesDownloaded: expect.any(Number) as number,
      durationMs: expect.any(Number) as number,
      snapshot: expect.any(String) as string,
    });
    expect(diff(folder, target)).toBe('');
    expect(existsSync(join(target, '.arius-restore'))).toBe(false);
  });

  it('RS-07: a missing repository is told and never created', async () => {
    const service = await startFakeService();
    const { exitCode, lines } = await testAgent(service).run(['restore', join(temporaryFolder(), 'x')]);
    expect(exitCode).toBe(10);
    expect(lines.at(-1)).toMatchObject({ code: 'repository-not-found' });
    expect(service.count('createRepository')).toBe(0);
  });

  it('RS-08: downloads a large content once for all of its paths', async () => {
    const { service, folder, target, restore } = await archived({ a: LARGE, 'b/a': LARGE, 'c/d/a': LARGE });
    expect((await restore()).summary).toMatchObject({ filesRestored: 3 });
    expect(service.count('get', 'chunks/')).toBe(1);
    expect(diff(folder, target)).toBe('');
  });

  it('RS-09, RS-10: restores one tar member and an empty file to several paths, each with its own time', async () => {
    const service = await startFakeService();
    const agent = testAgent(service);
    const folder = temporaryFolder();
    const times: Record<string, number> = {
      a: 1_000_000_000,
      b: 1_100_000_000,
      'e-1': 1_200_000_000,
      'e-2': 1_300_000_000,
    };
    for (const [name, seconds] of Object.entries(times)) {
      writeFileSync(join(folder, name), name.startsWith('e') ? '' : 'same');
      utimesSync(join(folder, name), seconds, seconds);
    }
    await agent.run(['archive', folder]);
    const target = join(temporaryFolder(), 'target');
    await agent.run(['restore', target]);
    expect(diff(folder, target)).toBe('');
    for (const [name, seconds] of Object.entries(times)) {
      expect(statSync(join(target, name)).mtimeMs).toBe(seconds * 1000);
    }
  });

  it('RS-11: an invalid hash in a node fails the restore, and nothing is written', async () => {
    const { service, target, restore } = await archived({ a: 'a' });
    const root = service.snapshots[0]?.rootHash as FileTreeHash;
    const text = Buffer.from('not-a-hash F 2026-01-01T00:00:00+00:00 2026-01-01T00:00:00+00:00 a\n');
    const hash = hasher.fileTreeHash(text);
    service.blobs.set(`filetrees/${hash}`, {
      ...(service.blobs.get(`filetrees/${root}`) as FakeBlob),
      body: Buffer.from(await codec.encode(text)),
    });
    (service.snapshots[0] as { rootHash: string }).rootHash = hash;
    const { exitCode, lines } = await restore();
    expect(exitCode).toBe(1);
    expect(lines.at(-1)).toMatchObject({ code: 'blob-corrupt' });
    expect(existsSync(target)).toBe(false);
  });

  it('RS-12: a content that the index does not know is told with the way to repair it, the rest is restored', async () => {
    const { service, restore } = await archived({ a: 'a', b: 'b' });
    service.entries.delete(hasher.contentHash(Buffer.from('a')));
    const result = await restore();
    expect(result.exitCode).toBe(3);
    expect(result.summary).toMatchObject({ filesFailed: 1, filesRestored: 1 });
    expect(warnings(result)).toMatchObject([{ path: 'a', message: expect.stringContaining('repair') as string }]);
  });

  it.each(['chunk-index-corrupt', 'repair-incomplete'])(
    'RS-13, RS-14: %s ends the restore with 14 and the command that mends it',
    async (code) => {
      const { service, restore } = await archived({ a: 'a' });
      service.intercept = (route, input) => {
        if (route !== 'lookup') {
          return undefined;
        }
        expect(input.purpose).toBe('restore');
        const body = { type: 'x', title: 'x', status: 409, code, detail: 'It is.', next: 'Run arius-agent repair.' };
        return { status: 409, body };
      };
      const { exitCode, lines } = await restore();
      expect(exitCode).toBe(14);
      expect(lines.at(-1)).toMatchObject({ code, next: 'Run arius-agent repair.' });
    },
  );

  it('RS-02, RS-03, RS-15, RS-18: --path takes whole names: a folder and what is below it, or one file', async () => {
    const { service, target, restore } = await archived({
      'dir/a': 'a',
      'dir/sub/b': 'b',
      'directory/c': 'c',
      'other/d': 'd',
      'other/e': 'e',
    });
    expect((await restore('--path', 'dir', '--path', '/other/d')).summary).toMatchObject({ filesRestored: 3 });
    expect(execFileSync('find', ['.', '-type', 'f'], { cwd: target }).toString().split('\n').sort()).toEqual([
      '',
      './dir/a',
      './dir/sub/b',
      './other/d',
    ]);
    // The node of `directory` leads to nothing that is wanted, so it is not read.
    expect(service.count('get', 'filetrees/')).toBe(4);
  });

  it('says when there is nothing at a path', async () => {
    const { target, restore } = await archived({ 'dir/a': 'a' });
    const { exitCode, lines } = await restore('--path', 'dir/b');
    expect(exitCode).toBe(1);
    expect(lines.at(-1)).toMatchObject({ code: 'not-found', message: expect.stringContaining('dir/b') as string });
    expect(existsSync(target)).toBe(false);
  });

  it('RS-01: reads the tree breadth first', async () => {
    const { service, restore } = await archived({ 'a/x/1': '1', 'b/y/2': '2', 'c/3': '3' });
    const names = new Map<string, string>();
    await restore();
    const depth: number[] = [];
    for (const { kind, name } of service.requests) {
      if (kind === 'get' && name.startsWith('filetrees/')) {
        const text = Buffer.from(await codec.decode((service.blobs.get(name) as FakeBlob).body, 10_000)).toString();
        names.set(name, text);
        depth.push(text.includes(' a/\n') ? 0 : text.includes('/\n') || text.includes(' 3\n') ? 1 : 2);
      }
    }
    expect(depth).toEqual([...depth].sort());
    expect(depth).toHaveLength(6);
  });

  it('RS-17: writes no pointer files', async () => {
    const { target, restore } = await archived({ a: 'a' });
    await restore();
    expect(readdirSync(target)).toEqual(['a']);
  });

  it('AR-49, RS-19: downloads a tar once, however its members are scattered over the tree', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [`d${i % 7}/e${i % 3}/f${i}`, `content ${i}`]),
    );
    const { service, folder, target, restore } = await archived(files);
    await restore();
    expect(service.count('get', 'chunks/')).toBe(1);
    expect(diff(folder, target)).toBe('');
  });

  it('RS-21: counts the bytes it downloads', async () => {
    const { service, restore } = await archived({ a: 'a', b: 'b' });
    const { summary } = await restore('--path', 'a');
    const [tar] = [...service.entries.values()];
    const nodes = service.snapshots[0]?.rootHash as string;
    expect(summary.bytesDownloaded).toBe(
      (tar?.chunkSize ?? 0) + (service.blobs.get(`filetrees/${nodes}`)?.body.byteLength ?? 0),
    );
  });

  it('RS-22: a missing chunk fails its files, and nothing hangs', async () => {
    const { service, restore } = await archived({ a: LARGE, b: 'b', c: 'c' });
    service.blobs.delete(`chunks/${service.entries.get(hasher.contentHash(Buffer.from('b')))?.chunkHash}`);
    const result = await restore();
    expect(result.exitCode).toBe(3);
    expect(result.summary).toMatchObject({ filesRestored: 1, filesFailed: 2 });
    expect(warnings(result).map(({ path }) => path)).toEqual(['b', 'c']);
  });

  it('accounts for every member that is expected in a tar', async () => {
    const { service, restore } = await archived({ a: 'a', b: 'b' });
    const writer = new TarBundleWriter();
    const parts: Uint8Array[] = [];
    const reading = (async () => {
      for await (const bytes of codec.encodeStream(writer.stream)) {
        parts.push(bytes);
      }
    })();
    await writer.add(hasher.contentHash(Buffer.from('a')), Buffer.from('a'));
    writer.finish();
    await reading;
    const tar = [...service.entries.values()][0]?.chunkHash;
    (service.blobs.get(`chunks/${tar}`) as FakeBlob).body = Buffer.concat(parts);
    const result = await restore();
    expect(result.exitCode).toBe(3);
    expect(result.summary).toMatchObject({ filesRestored: 1, filesFailed: 1 });
    expect(warnings(result)).toMatchObject([{ path: 'b' }]);
  });

  it.each([
    ['truncated', (body: Buffer) => body.subarray(0, -3)],
    ['damaged', (body: Buffer) => Buffer.concat([body.subarray(0, 30), Buffer.from([1, 2, 3]), body.subarray(33)])],
    ['longer than it should be', (body: Buffer) => Buffer.concat([body, Buffer.from('x')])],
    ['empty', () => Buffer.alloc(0)],
  ])('AR-56, AR-57: never restores from a body that is %s', async (_, damage) => {
    const noise = Buffer.from(Array.from({ length: 1_100_000 }, (_, i) => (i * 7919 + (i >> 3)) % 251));
    const { service, target, restore } = await archived({ large: noise, small: 'b' });
    for (const [name, blob] of service.blobs) {
      if (name.startsWith('chunks/') && blob.body.byteLength > 0) {
        blob.body = damage(blob.body);
      }
    }
    const result = await restore();
    // A byte behind the end of a body may come after a file that is whole and verified; it never changes one.
    expect([0, 3]).toContain(result.exitCode);
    for (const name of existsSync(target) ? readdirSync(target) : []) {
      expect(readFileSync(join(target, name)).equals(name === 'large' ? noise : Buffer.from('b'))).toBe(true);
    }
    expect(readdirSync(target)).not.toContain('.arius-restore');
  });

  it('never restores a body that decodes to another content', async () => {
    const { service, target, restore } = await archived({ large: LARGE });
    const other = Buffer.alloc(LARGE.length, 'x');
    const blob = service.blobs.get(`chunks/${hasher.contentHash(LARGE)}`) as FakeBlob;
    blob.body = Buffer.from(await codec.encode(other));
    const result = await restore();
    expect(result.exitCode).toBe(3);
    expect(readdirSync(target)).toEqual([]);
  });

  it('RS-26..30: what is on disk decides: new, identical, different, different with --overwrite', async () => {
    const { service, target, restore } = await archived({
      fresh: 'new',
      same: 'same',
      differs: 'theirs',
      large: LARGE,
    });
    mkdirSync(target);
    writeFileSync(join(target, 'same'), 'same');
    writeFileSync(join(target, 'differs'), 'mine');
    writeFileSync(join(target, 'large'), LARGE);
    const kept = await restore('-v');
    expect(kept.exitCode).toBe(0);
    expect(kept.summary).toMatchObject({ filesRestored: 1, filesIdentical: 2, filesKept: 1 });
    expect(readFileSync(join(target, 'differs'), 'utf8')).toBe('mine');
    const actions = kept.lines.filter(({ messageType }) => messageType === 'file');
    expect(Object.fromEntries(actions.map(({ path, action }) => [path, action]))).toEqual({
      fresh: 'restored',
      same: 'identical',
      differs: 'kept',
      large: 'identical',
    });
    service.requests.length = 0;
    const replaced = await restore('--overwrite');
    expect(replaced.summary).toMatchObject({ filesRestored: 1, filesIdentical: 3, filesKept: 0 });
    expect(readFileSync(join(target, 'differs'), 'utf8')).toBe('theirs');
    expect(service.count('get', 'chunks/')).toBe(1);
  });

  it('an interrupted restore is continued by running it again, and its leftovers are removed', async () => {
    const files = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`large${i}`, Buffer.alloc(1_100_000, i)]));
    const { service, agent, folder, target } = await archived(files);
    const stop = new AbortController();
    service.after = ({ kind }) => {
      if (kind === 'get' && service.count('get', 'chunks/') === 5) {
        stop.abort();
      }
    };
    const interrupted = await agent.run(['restore', target], { signal: stop.signal });
    expect(interrupted.exitCode).toBe(130);
    expect(readdirSync(target)).not.toContain('.arius-restore');
    // What a killed process leaves: its folder, under a number that no process has.
    mkdirSync(join(target, '.arius-restore', '4194300-0123abcd'), { recursive: true });
    writeFileSync(join(target, '.arius-restore', '4194300-0123abcd', '1'), 'half');
    service.after = undefined;
    const done = readdirSync(target).filter((name) => name.startsWith('large')).length;
    service.requests.length = 0;
    const { summary } = await agent.run(['restore', target]);
    expect(summary).toMatchObject({ filesIdentical: done, filesRestored: 6 - done });
    expect(service.count('get', 'chunks/')).toBe(6 - done);
    expect(diff(folder, target)).toBe('');
  });

  it('tries again when the connection breaks', async () => {
    const { service, folder, target, restore } = await archived({ a: LARGE, b: 'b' });
    let cuts = 3;
    service.before = ({ kind }) => {
      if (kind === 'get' && cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    expect(await restore()).toMatchObject({ exitCode: 0 });
    expect(diff(folder, target)).toBe('');
  });

  it('RS-25, RS-32: chunks in the archive tier are counted and told, exit 4, the rest is restored', async () => {
    const { service, restore } = await archived({ cold: LARGE, warm: 'w' });
    service.archived.add(`chunks/${hasher.contentHash(LARGE)}`);
    const result = await restore();
    expect(result.exitCode).toBe(4);
    expect(result.summary).toMatchObject({ chunksPending: 1, filesRestored: 1, filesFailed: 0 });
    expect(result.lines.at(-1)).toMatchObject({ messageType: 'error', code: 'not-finished' });
  });

  it('a dry run looks and writes nothing', async () => {
    const { service, target, restore } = await archived({ a: 'a', large: LARGE });
    const { exitCode, summary } = await restore('--dry-run');
    expect(exitCode).toBe(0);
    expect(summary).toMatchObject({
      dryRun: true,
      filesToRestore: 2,
      bytesToRestore: LARGE.length + 1,
      filesRestored: 0,
    });
    expect(existsSync(target)).toBe(false);
    expect(service.count('get', 'chunks/')).toBe(0);
  });

  it('refuses to guess between sources, and takes the one it is told', async () => {
    const { service, agent, folder } = await archived({ a: 'a' });
    await agent.run(['archive', folder, '--source', 'other:/x']);
    const target = join(temporaryFolder(), 'target');
    const refused = await agent.run(['restore', target]);
    expect(refused.exitCode).toBe(2);
    expect(refused.lines.at(-1)).toMatchObject({ code: 'snapshot-ambiguous' });
    expect(await agent.run(['restore', target, '--source', 'other:/x'])).toMatchObject({ exitCode: 0 });
    expect(service.snapshots).toHaveLength(2);
  });
});

describe('the target of a restore', () => {
  it('is never left through a link inside it: not for a folder, not for a file', async () => {
    const { target, restore } = await archived({ 'dir/a': 'theirs', file: 'theirs', 'safe/b': 'b' });
    const outside = temporaryFolder();
    writeFileSync(join(outside, 'precious'), 'precious');
    mkdirSync(target);
    symlinkSync(outside, join(target, 'dir'));
    symlinkSync(join(outside, 'precious'), join(target, 'file'));
    const kept = await restore();
    expect(kept.exitCode).toBe(3);
    expect(kept.summary).toMatchObject({ filesFailed: 1, filesKept: 1, filesRestored: 1 });
    await restore('--overwrite');
    expect(readdirSync(outside)).toEqual(['precious']);
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('precious');
    // With --overwrite the link itself is replaced by the file.
    expect(lstatSync(join(target, 'file')).isFile()).toBe(true);
    expect(readlinkSync(join(target, 'dir'))).toBe(outside);
  });

  it('may itself be reached through a link', async () => {
    const { folder, agent } = await archived({ a: 'a' });
    const real = temporaryFolder();
    const link = join(temporaryFolder(), 'link');
    symlinkSync(real, link);
    expect(await agent.run(['restore', link])).toMatchObject({ exitCode: 0 });
    expect(diff(folder, real)).toBe('');
  });

  it('keeps a folder that is in the place of a file, and a file in the place of a folder', async () => {
    const { target, restore } = await archived({ a: 'file', 'b/c': 'c', d: 'd' });
    mkdirSync(join(target, 'a'), { recursive: true });
    writeFileSync(join(target, 'b'), 'mine');
    const result = await restore('--overwrite');
    expect(result.exitCode).toBe(3);
    expect(result.summary).toMatchObject({ filesFailed: 2, filesRestored: 1 });
    expect(readFileSync(join(target, 'b'), 'utf8')).toBe('mine');
  });

  it('is refused when it is a file or may not be written', async () => {
    const { agent } = await archived({ a: 'a' });
    const parent = temporaryFolder();
    writeFileSync(join(parent, 'file'), 'x');
    const file = await agent.run(['restore', join(parent, 'file')]);
    expect(file).toMatchObject({ exitCode: 1 });
    expect(file.lines.at(-1)).toMatchObject({ code: 'folder-unreadable' });
    const closed = temporaryFolder();
    execFileSync('chmod', ['555', closed]);
    const denied = await asOrdinaryUser([closed, agent.agentDirectory], () => agent.run(['restore', closed]));
    expect(denied).toMatchObject({ exitCode: 1 });
    expect(denied.lines.at(-1)).toMatchObject({ code: 'folder-unreadable' });
  });

  it('gets nothing of a tree with names that lead out of it', async () => {
    const { service, target, restore } = await archived({ a: 'a' });
    const hash = hasher.contentHash(Buffer.from('a'));
    for (const name of ['../escape', '..', '/abs', 'x/../../y']) {
      const text = Buffer.from(`${hash} F 2026-01-01T00:00:00+00:00 2026-01-01T00:00:00+00:00 ${name}\n`);
      const rootHash = hasher.fileTreeHash(text);
      const body = Buffer.from(await codec.encode(text));
      service.blobs.set(`filetrees/${rootHash}`, { body, metadata: {}, tier: 'Cool', contentType: '' });
      (service.snapshots[0] as { rootHash: string }).rootHash = rootHash;
      expect(await restore()).toMatchObject({ exitCode: 1 });
    }
    expect(existsSync(target)).toBe(false);
    expect(existsSync(join(target, '..', 'escape'))).toBe(false);
  });

  it('restores many files of one content, wherever they lie', async () => {
    const { service, target, restore } = await archived({ a: 'same' });
    const hash = hasher.contentHash(Buffer.from('same'));
    await publishTree(
      service,
      Array.from({ length: 1200 }, (_, i) => fileEntry(`copy-${i}`, hash)),
    );
    expect((await restore()).summary).toMatchObject({ filesRestored: 1200, bytesRestored: 4800 });
    expect(service.count('get', 'chunks/')).toBe(1);
    expect(readdirSync(target)).toHaveLength(1200);
  });
});
