import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildFiletrees, nodePages } from '../../../src/agent/archive/filetree-builder.ts';
import type { ContentState, RunDatabase } from '../../../src/agent/archive/run-database.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import { type ContentHash, type FileTreeHash, parseContentHash } from '../../../src/hashing/hashes.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { DIRECTORY_ENTRIES_PER_PAGE } from '../../../src/limits.ts';
import { type FileTreeEntry, serializeFileTree } from '../../../src/repository/filetree.ts';
import { parseTimestamp } from '../../../src/repository/timestamps.ts';
import vectors from '../../vectors/filetrees.json' with { type: 'json' };
import { runDatabase } from '../support/run-database.ts';

const never = new AbortController().signal;
const plain = new Hasher();

interface TestFile {
  readonly path: string;
  readonly content?: string;
  readonly modified?: bigint;
  readonly state?: ContentState;
}

function contentOf(text: string): ContentHash {
  return plain.contentHash(Buffer.from(text));
}

/** Adds the directories of a tree in the order of a walk, then its files. */
function fill(run: RunDatabase, files: readonly TestFile[]): void {
  const directories = new Set<string>();
  for (const { path } of files) {
    const segments = path.split('/').slice(0, -1);
    for (const index of segments.keys()) {
      directories.add(segments.slice(0, index + 1).join('/'));
    }
  }
  const ids = new Map<string, number>();
  const add = (path: string, parent: number | null, name: string): void => {
    const id = run.addDirectory(parent, name);
    ids.set(path, id);
    const children = [...directories].filter((d) => d !== '' && d.slice(0, Math.max(0, d.lastIndexOf('/'))) === path);
    for (const child of children.sort()) {
      add(child, id, child.slice(child.lastIndexOf('/') + 1));
    }
    run.endDirectory(id);
  };
  add('', null, '');
  for (const file of files) {
    const content = contentOf(file.content ?? file.path);
    run.setContent(content, file.state ?? 'stored');
    run.addFile({
      directoryId: ids.get(file.path.slice(0, Math.max(0, file.path.lastIndexOf('/')))) as number,
      name: file.path.slice(file.path.lastIndexOf('/') + 1),
      sizeBytes: 1,
      createdTicks: 1n,
      modifiedTicks: file.modified ?? 2n,
      content,
      state: 'hashed',
      attempts: 1,
      pointer: false,
    });
  }
}

async function rootOf(files: readonly TestFile[], hasher = plain): Promise<FileTreeHash | undefined> {
  const run = await runDatabase();
  fill(run, files);
  return buildFiletrees(run, hasher, never);
}

function text(run: RunDatabase, directoryId: number): string {
  return Buffer.concat([...nodePages(run, directoryId)]).toString();
}

describe('buildFiletrees', () => {
  it('FT-34: has no root for a folder without files, whatever empty folders it has', async () => {
    const run = await runDatabase();
    expect(await buildFiletrees(run, plain, never)).toBeUndefined();
    const root = run.addDirectory(null, '');
    run.addDirectory(root, 'empty');
    run.endDirectory(root);
    expect(await buildFiletrees(run, plain, never)).toBeUndefined();
  });

  it('FT-35: one file makes a root of one line', async () => {
    const run = await runDatabase();
    fill(run, [{ path: 'a.txt', content: 'a' }]);
    const root = await buildFiletrees(run, plain, never);
    const node = text(run, 1);
    expect(node).toMatch(new RegExp(`^${contentOf('a')} F \\S+ \\S+ a\\.txt\\n$`));
    expect(root).toBe(plain.fileTreeHash(Buffer.from(node)));
  });

  it('FT-37, FT-48: the same files give the same root', async () => {
    const files = [{ path: 'a/b' }, { path: 'a/c' }, { path: 'd' }];
    expect(await rootOf(files)).toBe(await rootOf(files));
  });

  it('FT-38, FT-49: another time gives another root', async () => {
    expect(await rootOf([{ path: 'a/b', modified: 3n }])).not.toBe(await rootOf([{ path: 'a/b', modified: 4n }]));
  });

  it('FT-50: another passphrase gives another root', async () => {
    const sealed = new Hasher(new Passphrase('x'));
    expect(await rootOf([{ path: 'a' }], sealed)).not.toBe(await rootOf([{ path: 'a' }]));
  });

  it('FT-39, FT-40: a second file of one name in a folder is refused when it is added', async () => {
    const run = await runDatabase();
    const root = run.addDirectory(null, '');
    const row = {
      directoryId: root,
      name: 'twice',
      sizeBytes: 1,
      createdTicks: 1n,
      modifiedTicks: 1n,
      content: contentOf('x'),
      state: 'hashed',
      attempts: 1,
      pointer: false,
    } as const;
    expect(run.addFile(row)).toBeTypeOf('number');
    expect(run.addFile({ ...row, content: contentOf('y') })).toBeUndefined();
  });

  it('FT-51, FT-52: does not depend on the order in which files were added', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.stringMatching(/^[a-c]\/[a-c]\/[a-z\u00e9\uff5e]{1,3}$/u), { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.nat()),
        async (paths, random) => {
          const shuffled = paths.map((path) => ({ path, at: random.next().value })).sort((a, b) => a.at - b.at);
          expect(await rootOf(shuffled.map(({ path }) => ({ path })))).toBe(
            await rootOf(paths.map((path) => ({ path }))),
          );
        },
      ),
      { numRuns: 20 },
    );
  });

  it('writes each node as the format does, in pages of any size', async () => {
    const names = Array.from({ length: DIRECTORY_ENTRIES_PER_PAGE + 20 }, (_, i) => `f${i}`);
    const files = [...names.map((path) => ({ path })), { path: 'f1.d/x' }, { path: 'z/y/x' }];
    const run = await runDatabase();
    fill(run, files);
    await buildFiletrees(run, plain, never);
    const entries: FileTreeEntry[] = names.map((name) => ({
      kind: 'file',
      name,
      contentHash: contentOf(name),
      createdTicks: 1n,
      modifiedTicks: 2n,
    }));
    for (const name of ['f1.d', 'z']) {
      const id = run.childDirectory(1, name) as number;
      entries.push({ kind: 'directory', name, fileTreeHash: run.directory(id).treeHash as FileTreeHash });
    }
    expect(text(run, 1)).toBe(Buffer.from(serializeFileTree(entries)).toString());
  });

  it.each(vectors.cases)('FT-06, FT-07: builds the known node "$name", text and hash', async (vector) => {
    const run = await runDatabase();
    const root = run.addDirectory(null, '');
    for (const entry of vector.entries) {
      if (entry.type === 'D') {
        const id = run.addDirectory(root, entry.name);
        run.setNode(id, entry.hash as FileTreeHash, 1);
      } else {
        const content = parseContentHash(entry.hash);
        run.setContent(content, 'known');
        run.addFile({
          directoryId: root,
          name: entry.name,
          sizeBytes: 1,
          createdTicks: parseTimestamp(entry.created as string),
          modifiedTicks: parseTimestamp(entry.modified as string),
          content,
          state: 'hashed',
          attempts: 1,
          pointer: false,
        });
      }
    }
    run.endDirectory(root);
    expect(text(run, root)).toBe(vector.text);
    const hasher = new Hasher(new Passphrase(vector.passphrase));
    expect(hasher.fileTreeHash(Buffer.from(text(run, root)))).toBe(vector.fileTreeHash);
  });

  it('invariant 1: a file is in the tree only when its content is stored', async () => {
    const stored = [{ path: 'a/1' }, { path: 'b' }];
    const states: ContentState[] = ['queued', 'lost', 'waiting'];
    const others = states.map((state) => ({ path: `a/${state}`, state }));
    expect(await rootOf([...stored, ...others])).toBe(await rootOf(stored));
    expect(await rootOf([{ path: 'x/y', state: 'lost' }])).toBeUndefined();
    expect(await rootOf([{ path: 'b', state: 'known' }])).toBe(await rootOf([{ path: 'b', state: 'stored' }]));
  });

  it('leaves out a folder whose files all wait, and counts only files of the tree', async () => {
    const run = await runDatabase();
    fill(run, [{ path: 'a' }, { path: 'sub/deep/b', state: 'waiting' }]);
    await buildFiletrees(run, plain, never);
    expect(text(run, 1)).not.toContain('sub/');
    expect(run.totals()).toEqual({ fileCount: 1, bytes: 1 });
  });

  it('stops when the run is aborted', async () => {
    const run = await runDatabase();
    const root = run.addDirectory(null, '');
    for (let i = 0; i < 300; i++) {
      run.addDirectory(root, `d${i}`);
    }
    run.endDirectory(root);
    await expect(buildFiletrees(run, plain, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
  });
});
