/**
 * The entries of one shard and their text. Invariant, checked on the way out and on the way in: sorted by content hash,
 * each hash once, every hash inside the shard's prefix. What parses is therefore always safe to search and to merge.
 */

import type { ContentHash } from '../hashing/hashes.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import { formatShardLine, parseShardLine, ShardFormatError } from './shard-line.ts';

const LINE_END = /\r\n|\n|\r/;

/** Lines in order, each ended by LF, the last one too. */
export function serializeShard(prefix: string, entries: readonly ShardEntry[]): Uint8Array {
  assertShard(prefix, entries);
  return Buffer.from(entries.map((entry) => `${formatShardLine(entry)}\n`).join(''), 'latin1');
}

/**
 * Other clients' text may be unordered and may name a hash twice: the last line wins, as in their readers.
 * @throws ShardFormatError for a line that is not one, or a hash outside the prefix
 */
export function parseShard(prefix: string, text: Uint8Array): ShardEntry[] {
  const entries: ShardEntry[] = [];
  // Not fatal: bytes that are not UTF-8 can only stand in a comment, or spoil the line they are in.
  for (const line of new TextDecoder('utf-8').decode(text).split(LINE_END)) {
    const entry = parseShardLine(line);
    if (entry !== undefined) {
      entries.push(entry);
    }
  }
  const sorted = isSortedAndUnique(entries) ? entries : sortedAndUnique(entries);
  assertShard(prefix, sorted);
  return sorted;
}

/** Undefined when the shard does not hold the hash. */
export function findEntry(entries: readonly ShardEntry[], hash: ContentHash): ShardEntry | undefined {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle]?.contentHash ?? '') < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const entry = entries[low];
  return entry?.contentHash === hash ? entry : undefined;
}

export function sameEntry(left: ShardEntry, right: ShardEntry): boolean {
  return (
    left.contentHash === right.contentHash &&
    left.chunkHash === right.chunkHash &&
    left.originalSize === right.originalSize &&
    left.chunkSize === right.chunkSize &&
    left.tier === right.tier
  );
}

function assertShard(prefix: string, entries: readonly ShardEntry[]): void {
  const outside = entries.find((entry) => !entry.contentHash.startsWith(prefix));
  if (outside !== undefined) {
    throw new ShardFormatError(`${outside.contentHash} does not belong to the prefix ${prefix}`);
  }
  if (!isSortedAndUnique(entries)) {
    throw new ShardFormatError('the entries are not in order, each once');
  }
}

function isSortedAndUnique(entries: readonly ShardEntry[]): boolean {
  return entries.every((entry, index) => index === 0 || (entries[index - 1]?.contentHash ?? '') < entry.contentHash);
}

function sortedAndUnique(entries: readonly ShardEntry[]): ShardEntry[] {
  const last = new Map(entries.map((entry) => [entry.contentHash, entry]));
  return [...last.values()].sort((left, right) => (left.contentHash < right.contentHash ? -1 : 1));
}
