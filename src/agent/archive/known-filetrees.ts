/**
 * Which nodes need no upload, because the newest snapshot of this source holds them: its subtrees are durable. Answered
 * from the node list this agent remembered when it published that very snapshot; otherwise by reading the old tree, only
 * where it differs from the new one. An old node that cannot be read is not known, nor is what only it would have told of:
 * too much is offered then, and what is there already conflicts.
 */

import { BodyCorruptError } from '../../codec/errors.ts';
import type { SnapshotInfo } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import type { FileTreeEntry } from '../../repository/filetree.ts';
import type { HashCache } from '../files/hash-cache.ts';
import type { FiletreeReader } from '../snapshots/filetree-reader.ts';
import { BlobArchivedError } from '../transport/blob-client.ts';
import type { RunDatabase } from './run-database.ts';

export async function markKnownFiletrees(options: {
  readonly run: RunDatabase;
  readonly newest: SnapshotInfo;
  readonly source: string;
  readonly cache: HashCache;
  readonly reader: FiletreeReader;
}): Promise<void> {
  const { run, newest } = options;
  const isKnown = options.cache.snapshotNodes(options.source, newest.name);
  if (isKnown !== undefined) {
    markRemembered(run, isKnown);
  } else if (run.lastDirectoryId > 0) {
    await markByReading(run, newest.rootHash as FileTreeHash, options.reader);
  }
}

/** A known node is durable with all that is below it. */
function markRemembered(run: RunDatabase, isKnown: (hash: FileTreeHash) => boolean): void {
  for (let id = 1; id <= run.lastDirectoryId; ) {
    const { treeHash, lastId } = run.directory(id);
    if (treeHash !== undefined && isKnown(treeHash)) {
      run.markSubtreePresent(id);
      id = lastId + 1;
    } else {
      id++;
    }
  }
}

/** Both trees side by side, from the root down, entering only directories that exist in both and differ. */
async function markByReading(run: RunDatabase, oldRoot: FileTreeHash, reader: FiletreeReader): Promise<void> {
  // Bounded by the depth of the tree times the entries of a directory that differ; in practice a handful.
  const differing: { id: number; oldHash: FileTreeHash }[] = [];
  const compare = (id: number, oldHash: FileTreeHash): void => {
    if (run.directory(id).treeHash === oldHash) {
      run.markSubtreePresent(id);
    } else {
      differing.push({ id, oldHash });
    }
  };
  compare(1, oldRoot);
  for (let next = differing.pop(); next !== undefined; next = differing.pop()) {
    for await (const entry of readableEntries(reader, next.oldHash)) {
      const child = entry.kind === 'directory' ? run.childDirectory(next.id, entry.name) : undefined;
      if (entry.kind === 'directory' && child !== undefined) {
        compare(child, entry.fileTreeHash);
      }
    }
  }
}

/** Ends early where a node cannot be read. What the service or the connection refuses is no such thing, and is thrown. */
async function* readableEntries(reader: FiletreeReader, hash: FileTreeHash): AsyncGenerator<FileTreeEntry, void, void> {
  try {
    for await (const page of reader.read(hash)) {
      yield* page;
    }
  } catch (error) {
    if (!isUnreadable(error)) {
      throw error;
    }
  }
}

function isUnreadable(error: unknown): boolean {
  return (
    error instanceof BodyCorruptError ||
    error instanceof BlobArchivedError ||
    (error instanceof AriusError && (error.code === 'blob-corrupt' || error.code === 'not-found'))
  );
}
