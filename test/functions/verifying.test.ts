import { describe, expect, it } from 'vitest';
import type { ContentHash, FileTreeHash } from '../../src/hashing/hashes.ts';
import { VERIFY_CHILDREN_ON_STACK, VERIFY_NODES_PER_ACTIVITY } from '../../src/limits.ts';
import { filetreeBlobName } from '../../src/repository/blob-names.ts';
import type { FileTreeEntry } from '../../src/repository/filetree.ts';
import { Archive, file, folder } from '../service/support/archive.ts';
import { Engine } from './support/engine.ts';

/** A folder of many folders, each with one file of the given contents in turn. */
async function wideTree(archive: Archive, folders: number, contents: readonly ContentHash[]): Promise<FileTreeHash> {
  const entries: FileTreeEntry[] = [];
  for (let index = 0; index < folders; index++) {
    const name = `folder ${String(index).padStart(5, '0')}`;
    const content = contents[index % contents.length] ?? archive.hashOf('nothing');
    entries.push(folder(name, await archive.uploadTree([file(`${name}.jpg`, content)])));
  }
  return await archive.uploadTree(entries);
}

async function completed(archive: Archive, engine: Engine, runId: string, root: FileTreeHash): Promise<unknown> {
  archive.clock.advance(1000);
  const operationId = await archive.complete(runId, root);
  await engine.dispatch('photos');
  return await archive.service.operations.get('photos', operationId);
}

describe('the walk over new filetree nodes', () => {
  /** More than one slice, and more than a stack takes of one folder. */
  const folders = VERIFY_NODES_PER_ACTIVITY + VERIFY_CHILDREN_ON_STACK / 2;

  it('goes in slices, whatever the width of a folder, and reads each node', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const root = await wideTree(archive, folders, [await archive.recordLarge(runId, 'the file')]);
    const engine = new Engine(archive.service, archive.clock);
    const read = new Set<string>();
    archive.memory.onRequest = ({ phase, kind, name }) => {
      if (phase === 'after' && kind === 'blob-read' && name.startsWith('filetrees/')) {
        read.add(name);
      }
    };
    expect(await completed(archive, engine, runId, root)).toMatchObject({ state: 'succeeded' });
    expect(read.size).toBe(folders + 1);
    expect(engine.calls.filter((call) => call.name === 'verifySlice').length).toBeGreaterThan(1);
  }, 60_000);

  it('finds what is missing in the last of many folders', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const contents = Array.from({ length: folders }, () => archive.hashOf('the file'));
    await archive.recordLarge(runId, 'the file');
    contents[folders - 1] = archive.hashOf('lost');
    const root = await wideTree(archive, folders, contents);
    const operation = await completed(archive, new Engine(archive.service, archive.clock), runId, root);
    expect(operation).toMatchObject({ state: 'failed', error: { code: 'snapshot-incomplete' } });
    expect(JSON.stringify(operation)).toContain(`folder ${String(folders - 1).padStart(5, '0')}`);
  }, 60_000);

  it('invariant 5: a slice run twice leaves the same for the next', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const root = await wideTree(archive, folders, [await archive.recordLarge(runId, 'the file')]);
    const engine = new Engine(archive.service, archive.clock);
    engine.runTwice = ({ name }) => name === 'verifySlice';
    expect(await completed(archive, engine, runId, root)).toMatchObject({ state: 'succeeded' });
  }, 60_000);

  it('passes over what the newest snapshot of the source holds at the same place', async () => {
    const archive = await new Archive().create();
    const engine = new Engine(archive.service, archive.clock);
    const first = await archive.startRun();
    const content = await archive.recordLarge(first, 'the file');
    const kept = await wideTree(archive, 200, [content]);
    const before = await archive.uploadTree([file('a.jpg', content)]);
    await completed(
      archive,
      engine,
      first,
      await archive.uploadTree([folder('changed', before), folder('kept', kept)]),
    );

    const second = await archive.startRun();
    const after = await archive.uploadTree([file('a.jpg', await archive.recordLarge(second, 'another file'))]);
    const root = await archive.uploadTree([folder('changed', after), folder('kept', kept)]);
    const reads = archive.counting.counts()['blob-read'];
    expect(await completed(archive, engine, second, root)).toMatchObject({ state: 'succeeded' });
    // The new root, the old root beside it, the changed folder; the rest is shards and the manifest.
    expect(archive.counting.counts()['blob-read'] - reads).toBeLessThan(20);
  });

  it.each(['lost', 'damaged'])('walks a folder whose node in the newest snapshot is %s as a new one', async (how) => {
    const archive = await new Archive().create();
    const engine = new Engine(archive.service, archive.clock);
    const first = await archive.startRun();
    const content = await archive.recordLarge(first, 'the file');
    const kept = await archive.uploadTree([file('b.jpg', content)]);
    const before = await archive.uploadTree([file('a.jpg', content), folder('kept', kept)]);
    await completed(archive, engine, first, await archive.uploadTree([folder('changed', before)]));
    const { etag } = (await archive.container.head(filetreeBlobName(before))) as { etag: string };
    await archive.container.delete(filetreeBlobName(before), { etag });
    expect(await archive.container.head(filetreeBlobName(before))).toBeUndefined();
    if (how === 'damaged') {
      const options = { condition: { absent: true }, contentType: 'application/zstd' } as const;
      await archive.container.write(filetreeBlobName(before), Buffer.from('damaged'), options);
    }

    const second = await archive.startRun();
    const other = await archive.recordLarge(second, 'another file');
    const after = await archive.uploadTree([file('a.jpg', other), folder('kept', kept)]);
    const root = await archive.uploadTree([folder('changed', after)]);
    expect(await completed(archive, engine, second, root)).toMatchObject({ state: 'succeeded' });
  });

  it('walks a folder that was copied many times once', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    let node = await archive.uploadTree([file('a.jpg', await archive.recordLarge(runId, 'the file'))]);
    for (let depth = 0; depth < 40; depth++) {
      node = await archive.uploadTree([folder('one', node), folder('two', node)]);
    }
    const operation = await completed(archive, new Engine(archive.service, archive.clock), runId, node);
    expect(operation).toMatchObject({ state: 'succeeded' });
  });

  it('invariant 11: a node that does not have its hash, or its order, is an error', async () => {
    for (const text of ['reordered', 'replaced']) {
      const archive = await new Archive().create();
      const runId = await archive.startRun();
      const content = await archive.recordLarge(runId, 'the file');
      const line = (name: string): string =>
        `${content} F 1970-01-01T00:00:00.0000000+00:00 1970-01-01T00:00:00.0000000+00:00 ${name}\n`;
      const bytes = Buffer.from(text === 'reordered' ? line('b') + line('a') : line('a'));
      const hash = archive.hasher.fileTreeHash(text === 'reordered' ? bytes : Buffer.from(line('b')));
      await archive.container.write(`filetrees/${hash}`, await archive.codec.encode(bytes), {
        condition: { absent: true },
        contentType: 'application/zstd',
      });
      const operation = await completed(archive, new Engine(archive.service, archive.clock), runId, hash);
      expect(operation).toMatchObject({ state: 'failed', error: { code: 'blob-corrupt' } });
      expect(JSON.stringify(operation)).toContain(`filetrees/${hash}`);
    }
  });
});
