import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunDatabase } from '../../../src/agent/archive/run-database.ts';
import { createExclusions, type Exclusions } from '../../../src/agent/files/exclusions.ts';
import { type ScannedFile, type Skip, scan } from '../../../src/agent/files/scan.ts';
import { DIRECTORY_ENTRIES_PER_PAGE } from '../../../src/limits.ts';
import { temporaryFolder } from '../support/run-command.ts';
import { runDatabase } from '../support/run-database.ts';
import { asOrdinaryUser } from '../support/unprivileged.ts';

interface Scanned {
  readonly files: ScannedFile[];
  readonly paths: string[];
  readonly skips: Skip[];
  readonly empty: string[];
  readonly run: RunDatabase;
}

async function scanFolder(root: string, exclusions: Exclusions = createExclusions()): Promise<Scanned> {
  const run = await runDatabase();
  const files: ScannedFile[] = [];
  const skips: Skip[] = [];
  const empty: string[] = [];
  for await (const file of scan({
    root,
    run,
    exclusions,
    onSkip: (skip) => skips.push(skip),
    onEmptyFolder: (path) => empty.push(path),
  })) {
    files.push(file);
  }
  return { files, paths: files.map(({ path }) => path), skips, empty, run };
}

function write(root: string, ...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), path);
  }
}

describe('scan', () => {
  it('yields the files of a folder before its subfolders, both by UTF-16 order, whatever the disk says', async () => {
    const root = temporaryFolder();
    write(root, 'z.txt', 'b/2', 'b/1', 'a.txt', 'a/x/deep', 'a/y', 'B.txt', '\uff5e.txt', '\u{1f600}.txt');
    const { paths } = await scanFolder(root);
    expect(paths).toEqual(['B.txt', 'a.txt', 'z.txt', '\u{1f600}.txt', '\uff5e.txt', 'a/y', 'a/x/deep', 'b/1', 'b/2']);
  });

  it('gives directories ids in the order of the walk, so that a subtree is a range of ids', async () => {
    const root = temporaryFolder();
    write(root, 'a/x/1', 'a/y/1', 'b/1');
    const { run } = await scanFolder(root);
    const paths = Array.from({ length: run.lastDirectoryId }, (_, index) => run.directoryPath(index + 1));
    expect(paths).toEqual(['', 'a', 'a/x', 'a/y', 'b']);
    expect([1, 2, 3, 4, 5].map((id) => run.directory(id).lastId)).toEqual([5, 4, 3, 4, 5]);
  });

  it('reads a folder of any size in pages', async () => {
    const root = temporaryFolder();
    const names = Array.from(
      { length: DIRECTORY_ENTRIES_PER_PAGE * 2 + 7 },
      (_, i) => `f${String(i).padStart(5, '0')}`,
    );
    write(root, ...names);
    const { paths, run } = await scanFolder(root);
    expect(paths).toEqual(names);
    expect(run.listings.names(1, 'file', '', 1)).toEqual([]);
  });

  it('keeps names with spaces, Unicode and leading dots as they are, without normalising', async () => {
    const root = temporaryFolder();
    const names = [' leading', '.hidden', 'e\u0301', 'trailing ', 'with space', '\u00e9', '日本語'].sort();
    write(root, ...names);
    expect((await scanFolder(root)).paths).toEqual(names);
  });

  it('refuses names that a repository cannot hold, each with a clear reason', async () => {
    const root = temporaryFolder();
    write(root, 'good', 'back\\slash', 'line\nbreak', 'del\u007f', ' ', 'C:/x');
    execFileSync('sh', ['-c', `printf x > "$(printf 'latin1-\\351')"`], { cwd: root });
    const { paths, skips } = await scanFolder(root);
    expect(paths).toEqual(['good']);
    expect(skips.map(({ reason }) => reason)).toEqual(Array(6).fill('name-not-representable'));
    const shown = skips.map(({ path }) => path).sort();
    expect(shown).toEqual([' ', 'C:', 'back\\slash', 'del\\u{7f}', 'latin1-\\xe9', 'line\\u{a}break'].sort());
    expect(skips.every(({ explanation }) => explanation.includes('rename it'))).toBe(true);
  });

  it('follows a link to a file, with the size of its target', async () => {
    const root = temporaryFolder();
    const outside = temporaryFolder();
    writeFileSync(join(outside, 'target'), 'x'.repeat(1234));
    symlinkSync(join(outside, 'target'), join(root, 'link'));
    const { files, skips } = await scanFolder(root);
    expect(files).toMatchObject([{ path: 'link', signals: { sizeBytes: 1234 } }]);
    expect(skips).toEqual([]);
  });

  it('AR-21: leaves out broken links, links to folders and special files, each reported, among many files', async () => {
    const root = temporaryFolder();
    write(root, ...Array.from({ length: 70 }, (_, i) => `file-${i}`), 'folder/x');
    symlinkSync('nowhere', join(root, 'broken'));
    symlinkSync('loop', join(root, 'loop'));
    symlinkSync('folder', join(root, 'to-folder'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    symlinkSync('pipe', join(root, 'to-pipe'));
    const { paths, skips } = await scanFolder(root);
    expect(paths).toHaveLength(71);
    expect(Object.fromEntries(skips.map(({ path, reason }) => [path, reason]))).toEqual({
      broken: 'broken-link',
      loop: 'broken-link',
      'to-folder': 'link-to-folder',
      pipe: 'special-file',
      'to-pipe': 'special-file',
    });
  });

  it('AR-26: never yields an excluded entry, and reports an excluded folder once', async () => {
    const root = temporaryFolder();
    write(root, 'keep', '@eaDir/a', '@eaDir/b', 'Thumbs.db', 'x.tmp', 'node_modules/a/b', 'sub/x.tmp');
    const { paths, skips } = await scanFolder(root, createExclusions([], ['*.tmp', 'node_modules']));
    expect(paths).toEqual(['keep']);
    expect(skips.map(({ path }) => path).sort()).toEqual(['@eaDir', 'Thumbs.db', 'node_modules', 'sub/x.tmp', 'x.tmp']);
  });

  it('never tests the archived folder itself', async () => {
    const root = join(temporaryFolder(), '@eaDir');
    write(root, 'a');
    expect((await scanFolder(root)).paths).toEqual(['a']);
  });

  it('tells empty folders, which a repository does not hold', async () => {
    const root = temporaryFolder();
    write(root, 'a/file');
    mkdirSync(join(root, 'a', 'empty'));
    expect((await scanFolder(root)).empty).toEqual(['a/empty']);
  });

  it('reports a folder it may not read, and goes on', async () => {
    const root = temporaryFolder();
    write(root, 'a/1', 'b/1', 'c/1');
    chmodSync(join(root, 'b'), 0o000);
    const { paths, skips } = await asOrdinaryUser([root], () => scanFolder(root));
    expect(paths).toEqual(['a/1', 'c/1']);
    expect(skips).toMatchObject([{ path: 'b', reason: 'unreadable' }]);
  });

  it('says what is wrong with the folder itself', async () => {
    const root = temporaryFolder();
    write(root, 'file');
    await expect(scanFolder(join(root, 'missing'))).rejects.toMatchObject({
      code: 'folder-unreadable',
      message: expect.stringContaining('does not exist') as string,
    });
    await expect(scanFolder(join(root, 'file'))).rejects.toMatchObject({
      code: 'folder-unreadable',
      message: expect.stringContaining('is not a folder') as string,
    });
  });

  it('passes a pointer file beside its binary, and yields one that stands alone under the name of the binary', async () => {
    const root = temporaryFolder();
    write(root, 'a.jpg', 'a.jpg.pointer.arius', 'b.jpg.pointer.arius', 'C.POINTER.ARIUS');
    const { files, skips } = await scanFolder(root);
    expect(files.map(({ path, localPath, pointer }) => ({ path, localPath, pointer }))).toEqual([
      { path: 'C', localPath: 'C.POINTER.ARIUS', pointer: true },
      { path: 'a.jpg', localPath: 'a.jpg', pointer: false },
      { path: 'b.jpg', localPath: 'b.jpg.pointer.arius', pointer: true },
    ]);
    expect(skips).toEqual([]);
  });

  it('leaves out pointer files without a usable name', async () => {
    const root = temporaryFolder();
    write(root, '.pointer.arius', 'x.pointer.arius.pointer.arius');
    const { files, skips } = await scanFolder(root);
    expect(files).toEqual([]);
    expect(skips.map(({ reason }) => reason)).toEqual(['pointer-file', 'pointer-file']);
  });
});
