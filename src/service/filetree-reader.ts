/**
 * Reading a filetree node of any size in bounded memory: its entries come in groups, in the order of the node. Ends
 * normally only when the whole node was there, decoded, in order, and hashed to its name.
 */

import { AriusError } from '../errors.ts';
import type { FileTreeHash } from '../hashing/hashes.ts';
import { FILETREE_DECODED_BYTES_MAX } from '../limits.ts';
import { filetreeBlobName } from '../repository/blob-names.ts';
import { type FileTreeEntry, parseFileTree } from '../repository/filetree.ts';
import type { OpenRepository } from './open-repository.ts';
import { namingBlob } from './stored-bodies.ts';

type NodeStore = Pick<OpenRepository, 'container' | 'codec' | 'hasher'>;

const LINE_FEED = 0x0a;
const NEXT_STEP = 'Put back this blob from a copy: archiving does not replace it.';

/** @returns undefined when there is no such node; otherwise its entries, to be read to their end */
export async function openFileTree(
  store: NodeStore,
  hash: FileTreeHash,
): Promise<AsyncGenerator<FileTreeEntry[]> | undefined> {
  const opened = await store.container.openRead(filetreeBlobName(hash));
  return opened === undefined ? undefined : readEntries(store, hash, opened.body);
}

async function* readEntries(
  store: NodeStore,
  hash: FileTreeHash,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<FileTreeEntry[]> {
  const name = filetreeBlobName(hash);
  const groups = parseGroups(store, hash, body);
  try {
    for (;;) {
      const group = await namingBlob(name, async () => await groups.next());
      if (group.done === true) {
        return;
      }
      yield group.value;
    }
  } finally {
    await groups.return(undefined);
  }
}

async function* parseGroups(
  store: NodeStore,
  hash: FileTreeHash,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<FileTreeEntry[]> {
  const running = store.hasher.start();
  let last: string | undefined;
  for await (const lines of wholeLines(store.codec.decodeStream(body, FILETREE_DECODED_BYTES_MAX), running)) {
    const entries = parseFileTree(lines);
    for (const entry of entries) {
      if (last !== undefined && entry.name < last) {
        throw corrupt(`its entries are out of order at ${JSON.stringify(entry.name)}`);
      }
      last = entry.name;
    }
    yield entries;
  }
  if (last === undefined) {
    throw corrupt('it has no entries');
  }
  if (running.digest() !== hash) {
    throw corrupt('its text does not have the hash it is named by');
  }
}

/** Cuts the text where a line ends, so that each piece is a small node of its own. */
async function* wholeLines(
  plain: AsyncIterable<Uint8Array>,
  running: { update(bytes: Uint8Array): void },
): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array[] = [];
  for await (const piece of plain) {
    running.update(piece);
    const end = piece.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      const lines = Buffer.concat([...rest, piece.subarray(0, end)]);
      rest = [];
      if (hasText(lines)) {
        yield lines;
      }
    }
    if (end < piece.length) {
      // A copy: the decoder may use its buffer again.
      rest.push(Uint8Array.from(piece.subarray(end)));
    }
  }
  const lines = Buffer.concat(rest);
  if (hasText(lines)) {
    yield lines;
  }
}

function hasText(lines: Uint8Array): boolean {
  return lines.some((byte) => byte !== LINE_FEED && byte !== 0x0d);
}

function corrupt(problem: string): AriusError {
  return new AriusError('blob-corrupt', `A filetree node cannot be read: ${problem}`, NEXT_STEP);
}
