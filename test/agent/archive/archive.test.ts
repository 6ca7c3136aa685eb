import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { parseChunkMetadata } from '../../../src/repository/chunk-metadata.ts';
import { expectRestored, type Setup, setup } from '../support/archived-folder.ts';
import { temporaryFolder, testAgent } from '../support/run-command.ts';
import { asOrdinaryUser } from '../support/unprivileged.ts';

function large(seed: number, bytes = 1_200_000): Buffer {
  const buffer = Buffer.alloc(bytes, seed);
  buffer.writeUInt32BE(seed);
  return buffer;
}

describe('archive', () => {
  it('AR-28..30, AR-32, AR-50: creates the repository, archives small and large files, and they come back', async () => {
    const { service, agent, folder, write } = await setup();
    write('a.txt', 'hello');
    write('sub/dir/b.txt', 'hello again');
    write('sub/large.bin', large(1));
    const first = await agent.run(['archive', folder]);
    expect(first).toMatchObject({ exitCode: 0, stderr: '' });
    expect(first.summary).toMatchObject({
      command: 'archive',
      repository: 'default',
      snapshotPublished: true,
      filesScanned: 3,
      filesExcluded: 0,
      filesNew: 3,
      filesUnchanged: 0,
      filesChangedWhileReading: 0,
      filesFailed: 0,
      bytesScanned: 1_200_016,
      chunksUploaded: 2,
      tarsUploaded: 1,
      thinChunks: 2,
      filetreesUploaded: 3,
      entriesRecorded: 3,
    });
    expect(service.info).toMatchObject({ kind: 'plain', tier: 'cool' });
    await expectRestored(agent, folder);
  });

  it('gives every field of the summary that the command line promises', async () => {
    const { agent, folder, write } = await setup();
    write('a.txt', 'hello');
    const { summary } = await agent.run(['archive', folder]);
    const promised = [
      ...['messageType', 'command', 'repository', 'runId', 'snapshot', 'snapshotPublished', 'filesScanned'],
      ...['filesExcluded', 'filesNew', 'filesUnchanged', 'filesChangedWhileReading', 'filesFailed', 'bytesScanned'],
      ...['chunksUploaded', 'bytesUploaded', 'tarsUploaded', 'thinChunks', 'filetreesUploaded', 'entriesRecorded'],
      ...['shardsWritten', 'shardsSplit', 'indexBytesWritten', 'storageRequests', 'estimatedCost', 'durationMs'],
    ];
    expect(Object.keys(summary)).toEqual(expect.arrayContaining(promised));
    expect(summary.storageRequests).toMatchObject({ 'blob-write': 2 + 1 + 3, 'table-read': 2 });
    expect(summary.estimatedCost).toMatchObject({
      currency: 'EUR',
      assumptions: expect.stringContaining('2026') as string,
    });
  });

  it('AR-34: an unchanged folder uploads nothing, publishes nothing, and says so', async () => {
    const { service, agent, folder, write } = await setup();
    write('a.txt', 'hello');
    write('b/large.bin', large(1));
    const first = await agent.run(['archive', folder]);
    service.requests.length = 0;
    const second = await agent.run(['archive', folder]);
    expect(second.summary).toMatchObject({
      snapshot: first.summary.snapshot,
      snapshotPublished: false,
      filesUnchanged: 2,
      filesNew: 0,
      bytesUploaded: 0,
    });
    expect(service.requests.map(({ kind }) => kind)).toEqual([
      'health',
      'getRepository',
      'startRun',
      'lookup',
      'completeRun',
    ]);
    const human = await agent.run(['archive', folder, '--url', service.url], { bare: true });
    expect(human.stdout).toContain('Nothing has changed');
    expect(service.snapshots).toHaveLength(1);
  });

  it('AR-36: uploads one content once, however many files have it, and names it for each of them', async () => {
    const { service, agent, folder, write } = await setup();
    for (const name of ['a', 'b', 'c/d']) {
      write(`${name}.small`, 'same');
      write(`${name}.large`, large(7));
    }
    const { summary } = await agent.run(['archive', folder]);
    expect(summary).toMatchObject({ filesNew: 6, chunksUploaded: 2, thinChunks: 1, entriesRecorded: 2 });
    expect(service.entries.size).toBe(2);
    await expectRestored(agent, folder);
  });

  it('AR-44: a file of exactly 1 MiB is a large chunk, one byte less goes into a tar', async () => {
    const { service, agent, folder, write } = await setup();
    write('large', Buffer.alloc(2 ** 20, 'l'));
    write('small', Buffer.alloc(2 ** 20 - 1, 's'));
    await agent.run(['archive', folder]);
    const kinds = [...service.entries.values()].map(({ originalSize, chunkHash, contentHash }) => [
      originalSize,
      chunkHash === contentHash,
    ]);
    expect(kinds.sort()).toEqual([
      [2 ** 20 - 1, false],
      [2 ** 20, true],
    ]);
  });

  it('AR-23, AR-48: commits every chunk with its metadata and tier in the one request that creates it', async () => {
    const { service, agent, folder, write } = await setup();
    write('large', large(1));
    write('small', 'x');
    await agent.run(['archive', folder, '--tier', 'cold']);
    for (const { contentHash, chunkHash } of service.entries.values()) {
      const blob = service.blobs.get(`chunks/${chunkHash}`);
      const metadata = parseChunkMetadata(blob?.metadata, blob?.body.byteLength ?? 0);
      expect(metadata).toMatchObject({
        type: contentHash === chunkHash ? 'large' : 'tar',
        chunkSize: blob?.body.byteLength,
      });
      expect(blob?.tier).toBe('Cold');
      expect([...service.runs.values()][0]?.tier).toBe('cold');
    }
  });

  it('AR-41, AR-42, AR-43: special characters, empty files and deleted files', async () => {
    const { agent, folder, write } = await setup();
    write('empty', '');
    write(' leading and trailing ', 'x');
    write('日本語/ünïcode 😀.txt', 'y');
    write('will-go', 'z');
    await agent.run(['archive', folder]);
    await expectRestored(agent, folder);
    const before = temporaryFolder();
    execFileSync('cp', ['-a', `${folder}/.`, before]);
    unlinkSync(join(folder, 'will-go'));
    await agent.run(['archive', folder]);
    await expectRestored(agent, folder);
    await expectRestored(agent, before, ['--snapshot', '1']);
  });

  it('AR-40: a renamed folder costs filetrees only', async () => {
    const { agent, folder, write } = await setup();
    write('old/a', 'a');
    write('old/b', large(3));
    write('other/c', 'c');
    await agent.run(['archive', folder]);
    renameSync(join(folder, 'old'), join(folder, 'new'));
    const { summary } = await agent.run(['archive', folder]);
    expect(summary).toMatchObject({ chunksUploaded: 0, filesNew: 0, filetreesUploaded: 1, snapshotPublished: true });
    await expectRestored(agent, folder);
  });

  it('AR-33: keeps several versions, and each comes back', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'one');
    write('b', 'stays');
    await agent.run(['archive', folder]);
    const before = temporaryFolder();
    execFileSync('cp', ['-a', `${folder}/.`, before]);
    write('a', 'two');
    await agent.run(['archive', folder]);
    expect(service.snapshots).toHaveLength(2);
    await expectRestored(agent, before, ['--snapshot', '1']);
    await expectRestored(agent, folder, ['--snapshot', '2']);
  });

  it('a changed time alone makes a new snapshot and uploads no chunk', async () => {
    const { agent, folder, write } = await setup();
    write('a', 'one');
    await agent.run(['archive', folder]);
    utimesSync(join(folder, 'a'), 1_000_000_000, 1_000_000_000);
    const { summary } = await agent.run(['archive', folder]);
    expect(summary).toMatchObject({ snapshotPublished: true, chunksUploaded: 0, filetreesUploaded: 1 });
  });

  it('AR-14: restores modification times', async () => {
    const { agent, folder, write } = await setup();
    write('a', 'one');
    utimesSync(join(folder, 'a'), 1_234_567_890.5, 1_234_567_890.5);
    await agent.run(['archive', folder]);
    const target = join(temporaryFolder(), 'restored');
    await agent.run(['restore', target]);
    expect(statSync(join(target, 'a')).mtimeMs).toBe(1_234_567_890_500);
  });

  it('AR-31, AR-51: seals everything in a sealed repository, and nothing opens without the passphrase', async () => {
    const { service, agent, folder, write } = await setup();
    service.passphrase = 'correct horse';
    const env = { ARIUS_PASSPHRASE: 'correct horse' };
    write('secret-name', 'secret content '.repeat(100));
    write('large', large(5));
    expect(await agent.run(['archive', folder], { env })).toMatchObject({ exitCode: 0 });
    expect(service.info?.kind).toBe('sealed');
    for (const { body } of service.blobs.values()) {
      expect(body.byteLength === 0 || body.subarray(0, 6).toString() === 'ArGCM1').toBe(true);
    }
    const contentHash = new Hasher(new Passphrase('correct horse')).contentHash(large(5));
    const body = service.blobs.get(`chunks/${contentHash}`)?.body as Buffer;
    const codec = createBodyCodec(new Passphrase('correct horse'));
    expect(Buffer.from(await codec.decode(body, 2_000_000)).equals(large(5))).toBe(true);
    const target = join(temporaryFolder(), 'restored');
    expect(await agent.run(['restore', target], { env })).toMatchObject({ exitCode: 0 });
    expect(execFileSync('diff', ['-r', folder, target]).toString()).toBe('');
  });

  it('archives a folder without files: no snapshot, and says so', async () => {
    const { service, agent, folder } = await setup();
    mkdirSync(join(folder, 'empty'));
    const { exitCode, summary } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(0);
    expect(summary).toMatchObject({ snapshot: null, snapshotPublished: false, emptyFolders: 1 });
    expect(service.snapshots).toEqual([]);
  });

  it('AR-27: a newly excluded file is gone from the next snapshot', async () => {
    const { agent, folder, write } = await setup();
    write('keep', 'k');
    write('x.tmp', 't');
    await agent.run(['archive', folder]);
    const { summary } = await agent.run(['archive', folder, '--exclude', '*.tmp']);
    expect(summary).toMatchObject({ filesExcluded: 1, filesScanned: 1, snapshotPublished: true });
    const { lines } = await agent.run(['ls']);
    expect(lines.filter(({ messageType }) => messageType === 'file').map(({ path }) => path)).toEqual(['keep']);
  });

  it('keeps the snapshots of several sources apart, and a no-op of one is none of the other', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'a');
    await agent.run(['archive', folder, '--source', 'nas:/one']);
    const other = await agent.run(['archive', folder, '--source', 'nas:/two']);
    expect(other.summary).toMatchObject({ snapshotPublished: true, chunksUploaded: 0 });
    const again = await agent.run(['archive', folder, '--source', 'nas:/one']);
    expect(again.summary).toMatchObject({ snapshotPublished: false });
    expect(service.snapshots.map(({ source }) => source)).toEqual(['nas:/one', 'nas:/two']);
  });

  it('AR-22: lists what cannot be read, archives the rest, and ends with 3', async () => {
    const { agent, folder, write } = await setup();
    write('good', 'g');
    write('secret', 's');
    write('closed/x', 'x');
    chmodSync(join(folder, 'secret'), 0o000);
    chmodSync(join(folder, 'closed'), 0o000);
    const result = await asOrdinaryUser([folder, agent.agentDirectory], () => agent.run(['archive', folder]));
    expect(result.exitCode).toBe(3);
    expect(result.summary).toMatchObject({ filesFailed: 2, filesScanned: 2, snapshotPublished: true });
    const warned = result.lines.filter(({ messageType }) => messageType === 'warning').map(({ path }) => path);
    expect(warned.sort()).toEqual(['closed', 'secret']);
    expect(result.lines.at(-1)).toMatchObject({ messageType: 'error', code: 'partly-done' });
  });

  it('AR-21: leaves out links that lead to no file, and follows those that do', async () => {
    const { agent, folder, write } = await setup();
    write('file', 'content');
    symlinkSync('file', join(folder, 'link'));
    symlinkSync('nowhere', join(folder, 'broken'));
    const { exitCode, summary } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(0);
    expect(summary).toMatchObject({ filesScanned: 2, filesExcluded: 1, chunksUploaded: 1 });
    const { lines } = await agent.run(['ls']);
    expect(lines.filter(({ path }) => path === 'link')).toMatchObject([{ size: 7 }]);
  });

  it('refuses names it cannot keep with a clear line each, and ends with 3', async () => {
    const { agent, folder, write } = await setup();
    write('fine', 'f');
    write('new\nline', 'n');
    const { exitCode, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(lines.find(({ messageType }) => messageType === 'warning')).toMatchObject({
      path: 'new\\u{a}line',
      message: expect.stringContaining('rename it') as string,
    });
  });

  it('AR-37, AR-45: a pointer file stands for its binary when the repository has it, and is reported when not', async () => {
    const { agent, folder, write } = await setup();
    write('photo.jpg', large(9));
    await agent.run(['archive', folder]);
    unlinkSync(join(folder, 'photo.jpg'));
    write('photo.jpg.pointer.arius', new Hasher().contentHash(large(9)));
    write('lost.jpg.pointer.arius', 'ab'.repeat(32));
    const { exitCode, summary, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(summary).toMatchObject({ filesFailed: 1, chunksUploaded: 0 });
    expect(lines.find(({ reason }) => reason === 'pointer-without-chunk')).toMatchObject({ path: 'lost.jpg' });
    const listed = (await agent.run(['ls'])).lines.filter(({ messageType }) => messageType === 'file');
    expect(listed).toMatchObject([{ path: 'photo.jpg', size: 1_200_000 }]);
  });

  it('AR-35, AR-47: writes no pointer files, and those beside their binaries change nothing', async () => {
    const { agent, folder, write } = await setup();
    write('photo.jpg', large(9));
    await agent.run(['archive', folder]);
    expect(readdirSync(folder)).toEqual(['photo.jpg']);
    write('photo.jpg.pointer.arius', new Hasher().contentHash(large(9)));
    const { summary } = await agent.run(['archive', folder]);
    expect(summary).toMatchObject({ filesScanned: 1, snapshotPublished: false });
  });

  it('AR-46: a file that is only named like a pointer is told, and never archived under the name it does not have', async () => {
    const { agent, folder, write } = await setup();
    write('fine', 'f');
    write('notes.pointer.arius', 'these are notes');
    const { exitCode, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(lines.find(({ messageType }) => messageType === 'warning')).toMatchObject({ path: 'notes.pointer.arius' });
    const listed = (await agent.run(['ls'])).lines.filter(({ messageType }) => messageType === 'file');
    expect(listed.map(({ path }) => path)).toEqual(['fine']);
  });

  it('AR-08: a young body without a sentinel makes its files wait, exit 4, everything else archived', async () => {
    const { service, agent, folder, write } = await setup();
    write('busy', large(1));
    write('also-busy', large(1));
    write('free', large(2));
    service.debris.add(new Hasher().contentHash(large(1)));
    const first = await agent.run(['archive', folder]);
    expect(first.exitCode).toBe(4);
    expect(first.summary).toMatchObject({
      filesWaiting: 2,
      filesFailed: 0,
      snapshotPublished: true,
      chunksUploaded: 1,
    });
    expect(first.lines.at(-1)).toMatchObject({ messageType: 'error', code: 'not-finished' });
    expect(service.snapshots.at(-1)).toMatchObject({ fileCount: 1 });
    service.debris.clear();
    expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 0 });
    await expectRestored(agent, folder);
  });

  it('makes all members of a tar wait whose place is taken, and only the one whose stub is', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'a');
    write('b', 'b');
    service.debris.add(new Hasher().contentHash(Buffer.from('a')));
    const { exitCode, summary } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(4);
    expect(summary).toMatchObject({ filesWaiting: 1, thinChunks: 1 });
  });

  it('AR-04, AR-05, AR-06, AR-07: takes committed chunks it meets for stored, and counts only what it wrote', async () => {
    const { service, agent, folder, write } = await setup();
    write('large', large(1));
    write('small', 's');
    await agent.run(['archive', folder]);
    service.entries.clear();
    service.snapshots.length = 0;
    const { exitCode, summary } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(0);
    expect(summary).toMatchObject({ chunksUploaded: 0, tarsUploaded: 0, bytesUploaded: 0, entriesRecorded: 2 });
    await expectRestored(agent, folder);
  });

  it('a dry run asks and changes nothing, also not the repository', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'a');
    const missing = await agent.run(['archive', folder, '--dry-run']);
    expect(missing.summary).toMatchObject({ dryRun: true, filesNew: 1, bytesNew: 1, bytesUploaded: 0, snapshot: null });
    expect(service.info).toBeUndefined();
    await agent.run(['archive', folder]);
    write('b', 'bb');
    service.requests.length = 0;
    const existing = await agent.run(['archive', folder, '--dry-run']);
    expect(existing.summary).toMatchObject({ filesNew: 1, filesUnchanged: 1, bytesNew: 2 });
    expect(service.requests.map(({ kind }) => kind)).toEqual(['health', 'getRepository', 'lookup']);
    const human = await agent.run(['archive', folder, '--dry-run', '--url', service.url], { bare: true });
    expect(human.stdout).toContain('nothing was uploaded');
  });

  it('leaves nothing on disk but its hash cache, also after a failure', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'a');
    await agent.run(['archive', folder]);
    service.intercept = (route) =>
      route === 'completeRun'
        ? {
            status: 409,
            body: { type: 'x', title: 'x', status: 409, code: 'snapshot-incomplete', detail: 'Gap.', next: 'Again.' },
          }
        : undefined;
    write('b', 'b');
    expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 1 });
    expect(readdirSync(join(agent.agentDirectory, 'runs'))).toEqual([]);
    expect(readdirSync(agent.agentDirectory).filter((name) => !name.startsWith('hash-cache'))).toEqual(['runs']);
  });

  it('leaves out its own state, should that lie in the archived folder', async () => {
    const { service, folder, write } = await setup();
    write('a', 'a');
    const agent = testAgent(service, join(folder, '.arius-functions', 'agent'));
    const { exitCode } = await agent.run(['archive', folder, '--spool', join(folder, 'spool')]);
    expect(exitCode).toBe(0);
    const listed = (await agent.run(['ls', '-R'])).lines.filter(({ messageType }) => messageType === 'file');
    expect(listed.map(({ path }) => path)).toEqual(['a']);
  });

  it('prepares bodies where --spool says', async () => {
    const { agent, folder, write, service } = await setup();
    const spool = join(temporaryFolder(), 'spool');
    write('a', large(1));
    let seen: string[] = [];
    service.before = ({ kind, name }) => {
      if (kind === 'put' && name.startsWith('chunks/')) {
        seen = readdirSync(spool);
      }
    };
    await agent.run(['archive', folder, '--spool', spool]);
    expect(seen).toHaveLength(1);
    expect(readdirSync(spool)).toEqual([]);
    expect(existsSync(join(agent.agentDirectory, 'runs'))).toBe(false);
  });

  it('waits for the operation, and passes on why it failed', async () => {
    const { service, agent, folder, write } = await setup();
    write('a', 'a');
    service.operationPolls = 2;
    expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 0 });
    expect(service.count('getOperation')).toBe(2);
    write('b', 'b');
    service.after = ({ kind }) => {
      if (kind === 'completeRun') {
        for (const operation of service.operations.values()) {
          operation.state = 'failed';
          operation.error = {
            type: 'x',
            title: 'x',
            status: 409,
            code: 'chunk-index-corrupt',
            detail: 'The shard chunk-index/ab cannot be read.',
            next: 'Run arius-agent repair.',
          };
        }
      }
    };
    const failed = await agent.run(['archive', folder]);
    expect(failed.exitCode).toBe(14);
    expect(failed.lines.at(-1)).toEqual({
      messageType: 'error',
      code: 'chunk-index-corrupt',
      message: 'The shard chunk-index/ab cannot be read.',
      next: 'Run arius-agent repair.',
    });
  });

  it('AR-52: works from a fresh machine as well: without its cache it reads everything and uploads nothing', async () => {
    const { service, agent, folder, write } = await setup();
    write('a/b', 'b');
    write('c', large(1));
    await agent.run(['archive', folder]);
    rmSync(join(agent.agentDirectory, 'hash-cache.sqlite'));
    write('a/new', 'n');
    const elsewhere = testAgent(service);
    const { summary } = await elsewhere.run(['archive', folder]);
    expect(summary).toMatchObject({ filesNew: 1, filesUnchanged: 2, filetreesUploaded: 2 });
    await expectRestored(agent, folder);
  });
});

describe('a filetree that is lost', () => {
  const files = { 'a.txt': 'a', 'sub/b.txt': 'b', 'sub/deep/c.txt': 'c', 'other/d.txt': 'd' };

  async function archivedOnce(): Promise<Setup & { nodes: string[] }> {
    const all = await setup();
    for (const [path, content] of Object.entries(files)) {
      all.write(path, content);
    }
    expect(await all.agent.run(['archive', all.folder])).toMatchObject({ exitCode: 0 });
    const nodes = all.service.names('filetrees/');
    expect(nodes).toHaveLength(4);
    return { ...all, nodes };
  }

  it('does not block archiving from an agent that remembers nothing, whichever node it is', async () => {
    const { nodes } = await archivedOnce();
    for (const index of nodes.keys()) {
      const { service, folder, write, nodes: stored } = await archivedOnce();
      service.blobs.delete(stored[index] as string);
      for (const path of Object.keys(files)) {
        write(path, `changed ${path}`);
      }
      const other = testAgent(service);
      expect(await other.run(['archive', folder])).toMatchObject({ exitCode: 0 });
      await expectRestored(other, folder);
    }
  });

  it('comes back with --rehash: every node is offered, though nothing changed and all are remembered', async () => {
    const { service, agent, folder, nodes } = await archivedOnce();
    for (const name of nodes) {
      service.blobs.delete(name);
      const { lines } = await agent.run(['restore', join(temporaryFolder(), 'x')]);
      expect(lines.at(-1)).toMatchObject({
        code: 'blob-corrupt',
        message: expect.stringContaining('missing') as string,
        next: expect.stringContaining('archive <folder> --rehash') as string,
      });
      service.requests.length = 0;
      const healed = await agent.run(['archive', folder, '--rehash']);
      expect(healed).toMatchObject({ exitCode: 0, summary: { filetreesUploaded: 1, snapshotPublished: false } });
      expect(service.count('put', 'filetrees/')).toBe(nodes.length);
      expect(service.count('get', 'filetrees/')).toBe(0);
      await expectRestored(agent, folder);
    }
  });

  it('comes back with --rehash when another file changed, from an agent that remembers nothing', async () => {
    const { service, folder, write, nodes } = await archivedOnce();
    for (const name of nodes) {
      service.blobs.delete(name);
    }
    write('a.txt', 'another');
    const other = testAgent(service);
    expect(await other.run(['archive', folder, '--rehash'])).toMatchObject({
      exitCode: 0,
      summary: { filetreesUploaded: 4, snapshotPublished: true },
    });
    await expectRestored(other, folder);
  });

  it('a damaged one stays damaged, and no text says that archiving again helps', async () => {
    const { service, agent, folder, nodes } = await archivedOnce();
    for (const name of nodes) {
      (service.blobs.get(name) as { body: Buffer }).body = Buffer.from('damaged');
    }
    expect(await agent.run(['archive', folder, '--rehash'])).toMatchObject({ exitCode: 0 });
    const { lines } = await agent.run(['ls']);
    const { code, next } = lines.at(-1) as { code: string; next: string };
    expect(code).toBe('blob-corrupt');
    expect(next).not.toMatch(/rehash|again/);
    expect(next).toContain('--snapshot');
  });

  it('--help says what --rehash does', async () => {
    const { stdout } = await testAgent(undefined).run(['archive', '--help'], { bare: true });
    expect(stdout.replace(/\s+/g, ' ')).toMatch(/--rehash .*offer every filetree again/);
  });
});
