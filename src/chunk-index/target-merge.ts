/**
 * The union of everything known about one target, in hash order, each hash once: pending rows first (they are the newest
 * facts), then the parent, then deeper shards. Holds one page of rows and the shards on the current path, no more: a
 * shard is opened when the merge reaches its range.
 */

import type { ContentHash } from '../hashing/hashes.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { LeafItem, LeafSource } from './leaf-builder.ts';
import type { ShardRef } from './listing.ts';
import type { PendingCursor } from './pending-cursor.ts';
import { sameEntry } from './shard.ts';
import type { LoadedShard } from './shard-store.ts';

export interface MergedItem extends LeafItem {
  /** Set when the entry comes from a pending row. */
  readonly rowEtag: string | undefined;
  /** The shards that hold exactly this entry already. */
  readonly heldBy: readonly string[];
}

/** What the merge read of a shard, for conditions and for "nothing changed". */
export interface MergedShard {
  readonly etag: string;
  readonly entryCount: number;
}

interface OpenShard {
  readonly prefix: string;
  readonly entries: readonly ShardEntry[];
  /** Shared by all items that only this shard holds. */
  readonly heldByIt: readonly string[];
  index: number;
}

export class TargetMerge implements LeafSource<MergedItem> {
  readonly #prefix: string;
  readonly #rows: PendingCursor;
  readonly #load: (ref: ShardRef) => Promise<LoadedShard>;
  /** Not opened yet, parents first. */
  readonly #waiting: ShardRef[];
  /** The shallowest first: that is the order in which they win. */
  #open: OpenShard[] = [];
  readonly #merged = new Map<string, MergedShard>();

  constructor(
    prefix: string,
    rows: PendingCursor,
    shards: readonly ShardRef[],
    load: (ref: ShardRef) => Promise<LoadedShard>,
  ) {
    this.#prefix = prefix;
    this.#rows = rows;
    this.#waiting = [...shards];
    this.#load = load;
  }

  /** Known for every shard whose range the merge has reached. */
  mergedShard(prefix: string): MergedShard | undefined {
    return this.#merged.get(prefix);
  }

  async next(): Promise<MergedItem | undefined> {
    const hash = await this.#lowestHash();
    if (hash === undefined) {
      return undefined;
    }
    const row = this.#rows.head?.entry.contentHash === hash ? this.#rows.head : undefined;
    const holders = this.#open.filter((shard) => headOf(shard)?.contentHash === hash);
    const [first] = holders;
    const entry = row?.entry ?? (first === undefined ? undefined : headOf(first));
    if (entry === undefined) {
      throw new Error(`Nobody holds ${hash}, which somebody has next`);
    }
    const heldBy = heldByOf(entry, holders);
    for (const shard of holders) {
      shard.index += 1;
    }
    this.#open = this.#open.filter((shard) => headOf(shard) !== undefined);
    if (row !== undefined) {
      await this.#rows.advance();
    }
    return { entry, rowEtag: row?.etag, heldBy };
  }

  /** Opens every shard whose range begins at or before it. */
  async #lowestHash(): Promise<ContentHash | undefined> {
    for (;;) {
      const lowest = this.#lowestHead();
      const [waiting] = this.#waiting;
      // Ordinal order of a prefix and a hash is that of the ranges: a prefix stands before every hash that has it.
      if (waiting === undefined || (lowest !== undefined && waiting.prefix > lowest)) {
        return lowest;
      }
      this.#waiting.shift();
      const shard = await this.#load(waiting);
      this.#merged.set(waiting.prefix, { etag: shard.etag, entryCount: shard.entries.length });
      if (shard.entries.length > 0) {
        this.#open.push({
          prefix: waiting.prefix,
          entries: shard.entries,
          heldByIt: [waiting.prefix],
          index: 0,
        });
      }
    }
  }

  #lowestHead(): ContentHash | undefined {
    const row = this.#rows.head?.entry.contentHash;
    let lowest = row?.startsWith(this.#prefix) ? row : undefined;
    for (const shard of this.#open) {
      const hash = headOf(shard)?.contentHash;
      if (hash !== undefined && (lowest === undefined || hash < lowest)) {
        lowest = hash;
      }
    }
    return lowest;
  }
}

function headOf(shard: OpenShard): ShardEntry | undefined {
  return shard.entries[shard.index];
}

function heldByOf(entry: ShardEntry, holders: readonly OpenShard[]): readonly string[] {
  const same = holders.filter((shard) => {
    const head = headOf(shard);
    return head !== undefined && sameEntry(head, entry);
  });
  const [only] = same;
  return same.length === 1 && only !== undefined ? only.heldByIt : same.map((shard) => shard.prefix);
}
