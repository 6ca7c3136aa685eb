/** What is stored, read past everything under test, and two readers of it: one that knows only that the parent wins. */

import { formatShardLine, parseShardLine } from '../../src/chunk-index/shard-line.ts';
import type { ContentHash } from '../../src/hashing/hashes.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import type { World } from './world.ts';

/** Shard prefix → entries by hash. */
export type Layout = ReadonlyMap<string, ReadonlyMap<string, ShardEntry>>;

/** Decoded shards by ETag, which is never given twice: looking again costs what changed. */
const decoded = new WeakMap<World, Map<string, ReadonlyMap<string, ShardEntry>>>();

/** Nobody is asked for permission: no hook sees these requests. */
export async function layoutOf(world: World): Promise<Layout> {
  const hook = world.storage.onRequest;
  world.storage.onRequest = undefined;
  const known = decoded.get(world) ?? new Map<string, ReadonlyMap<string, ShardEntry>>();
  decoded.set(world, known);
  const layout = new Map<string, ReadonlyMap<string, ShardEntry>>();
  for (const { name, etag } of (await world.container.listPage('chunk-index/')).blobs) {
    const shard = known.get(etag) ?? (await readShard(world, name));
    known.set(etag, shard);
    layout.set(name.slice('chunk-index/'.length), shard);
  }
  world.storage.onRequest = hook;
  return layout;
}

async function readShard(world: World, name: string): Promise<Map<string, ShardEntry>> {
  const stored = await world.container.read(name, Number.MAX_SAFE_INTEGER);
  const text = stored === undefined ? new Uint8Array() : await world.codec.decode(stored.bytes, 1e9);
  return entriesOfText(Buffer.from(text).toString());
}

function entriesOfText(text: string): Map<string, ShardEntry> {
  const entries = text.split('\n').flatMap((line) => parseShardLine(line) ?? []);
  return new Map(entries.map((entry) => [entry.contentHash, entry]));
}

export function textOf(list: readonly ShardEntry[]): string {
  return [...list]
    .sort((left, right) => (left.contentHash < right.contentHash ? -1 : 1))
    .map((entry) => `${formatShardLine(entry)}\n`)
    .join('');
}

/** Arius 7's way: the shallowest shard on the path, and no other, whatever it holds. */
export function parentWins(layout: Layout, hash: ContentHash): ShardEntry | undefined {
  for (let length = 2; length <= 64; length += 1) {
    const shard = layout.get(hash.slice(0, length));
    if (shard !== undefined) {
      return shard.get(hash);
    }
  }
  return undefined;
}

/** All shards on the path, the parent first. */
export function union(layout: Layout, hash: ContentHash): ShardEntry | undefined {
  for (let length = 2; length <= 64; length += 1) {
    const entry = layout.get(hash.slice(0, length))?.get(hash);
    if (entry !== undefined) {
      return entry;
    }
  }
  return undefined;
}

/** The layout as text, for comparing. */
export function describeLayout(layout: Layout): string[] {
  return [...layout].map(([prefix, shard]) => `${prefix}: ${[...shard.values()].map(formatShardLine).join(', ')}`);
}

/** The layout that one flush of everything gives, by the rule as it is written down. */
export function freshLayout(list: readonly ShardEntry[], max: number): string[] {
  const all = [...new Map(list.map((entry) => [entry.contentHash, entry])).values()].sort((left, right) =>
    left.contentHash < right.contentHash ? -1 : 1,
  );
  const cut = (prefix: string): [string, ReadonlyMap<string, ShardEntry>][] => {
    const inside = all.filter((entry) => entry.contentHash.startsWith(prefix));
    if (inside.length > max) {
      return [...'0123456789abcdef'].flatMap((digit) => cut(prefix + digit));
    }
    return inside.length === 0 ? [] : [[prefix, new Map(inside.map((entry) => [entry.contentHash, entry]))]];
  };
  const roots = [...new Set(all.map((entry) => entry.contentHash.slice(0, 2)))];
  return describeLayout(new Map(roots.flatMap(cut)));
}
