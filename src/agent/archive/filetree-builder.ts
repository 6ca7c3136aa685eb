/**
 * Builds the nodes of the tree from what the run database holds, bottom up: a parent contains the hashes of its children.
 * Nothing but one page of entries is in memory, however large a directory is: the text of a node is the concatenation of
 * the texts of consecutive pages, because entries come in the order of the format.
 */

import { AriusError } from '../../errors.ts';
import type { Hasher } from '../../hashing/hasher.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { DIRECTORY_ENTRIES_PER_PAGE, FILETREE_DECODED_BYTES_MAX } from '../../limits.ts';
import { type FileTreeEntry, serializeFileTree } from '../../repository/filetree.ts';
import type { RunDatabase } from './run-database.ts';

/**
 * Computes the hash of every node that has entries. A directory without any file below it has no node. Undefined: the
 * whole tree is empty, and there is no root.
 */
export async function buildFiletrees(
  run: RunDatabase,
  hasher: Hasher,
  signal: AbortSignal,
): Promise<FileTreeHash | undefined> {
  for (let id = run.lastDirectoryId; id >= 1; id--) {
    const hash = hasher.start();
    let nodeBytes = 0;
    for (const bytes of nodePages(run, id)) {
      hash.update(bytes);
      nodeBytes += bytes.byteLength;
    }
    if (nodeBytes > FILETREE_DECODED_BYTES_MAX) {
      throw tooLarge(run.directoryPath(id));
    }
    if (nodeBytes > 0) {
      run.setNode(id, hash.digest() as FileTreeHash, nodeBytes);
    }
    if (id % DIRECTORIES_BETWEEN_BREATHS === 0) {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    }
  }
  return run.lastDirectoryId === 0 ? undefined : run.directory(1).treeHash;
}

/** The text of a node, in pieces. Nothing for a directory without entries. */
export function* nodePages(run: RunDatabase, directoryId: number): Generator<Uint8Array, void, void> {
  let after: FileTreeEntry | undefined;
  do {
    const entries = run.treePage(directoryId, after, DIRECTORY_ENTRIES_PER_PAGE);
    if (entries.length > 0) {
      yield serializeFileTree(entries);
    }
    after = entries.length < DIRECTORY_ENTRIES_PER_PAGE ? undefined : entries.at(-1);
  } while (after !== undefined);
}

/** Signals and timers get their turn while many nodes are computed. */
const DIRECTORIES_BETWEEN_BREATHS = 256;

function tooLarge(path: string): AriusError {
  return new AriusError(
    'internal',
    `The folder ${path === '' ? '/' : path} has so many entries that its node would exceed ${FILETREE_DECODED_BYTES_MAX} bytes.`,
    'Spread its files over several folders, or exclude it with --exclude.',
  );
}
