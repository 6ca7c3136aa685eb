/**
 * Cuts a sorted stream of entries into leaves: a prefix that holds no more than the maximum is a leaf, otherwise its 16
 * children are visited; empty ranges give nothing. One streaming descent: never more than one entry above the maximum is
 * held, whatever the size. The result depends on the entries alone, so any way to the same entries ends in one layout.
 */

import type { ContentHash } from '../hashing/hashes.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import { childrenOf } from './router.ts';

/** An entry on its way into a leaf; callers carry along what they need to know about it. */
export interface LeafItem {
  readonly entry: ShardEntry;
}

/** Items in ascending order of their content hashes, each hash once; undefined at the end. */
export interface LeafSource<T extends LeafItem> {
  next(): Promise<T | undefined>;
}

export interface Leaf<T extends LeafItem> {
  readonly prefix: string;
  /** At least one. */
  readonly items: readonly T[];
}

/** The leaves below `prefix`, in order. The source must hold hashes of this prefix only. */
export async function* cutLeaves<T extends LeafItem>(
  prefix: string,
  source: LeafSource<T>,
  entryCountMax: number,
): AsyncGenerator<Leaf<T>> {
  const window = new LeafWindow(source, entryCountMax + 1);
  yield* leavesBelow(prefix, window, entryCountMax);
  if (!(await window.isUsedUp())) {
    throw new Error(`Entries outside the prefix ${prefix} reached its leaves`);
  }
}

async function* leavesBelow<T extends LeafItem>(
  prefix: string,
  window: LeafWindow<T>,
  entryCountMax: number,
): AsyncGenerator<Leaf<T>> {
  const count = await window.countWithin(prefix);
  if (count > entryCountMax) {
    for (const child of childrenOf(prefix)) {
      yield* leavesBelow(child, window, entryCountMax);
    }
  } else if (count > 0) {
    yield { prefix, items: window.take(count) };
  }
}

/** The next items of the source: one more than a leaf may hold shows whether a prefix fits. */
class LeafWindow<T extends LeafItem> {
  readonly #source: LeafSource<T>;
  readonly #itemsMax: number;
  #items: T[] = [];
  #last: ContentHash | undefined;
  #ended = false;

  constructor(source: LeafSource<T>, itemsMax: number) {
    this.#source = source;
    this.#itemsMax = itemsMax;
  }

  /** Exact up to the maximum of a leaf; above it, just more. */
  async countWithin(prefix: string): Promise<number> {
    await this.#fill();
    const outside = this.#items.findIndex((item) => !item.entry.contentHash.startsWith(prefix));
    return outside === -1 ? this.#items.length : outside;
  }

  take(count: number): T[] {
    return this.#items.splice(0, count);
  }

  async isUsedUp(): Promise<boolean> {
    await this.#fill();
    return this.#items.length === 0;
  }

  async #fill(): Promise<void> {
    while (!this.#ended && this.#items.length < this.#itemsMax) {
      const item = await this.#source.next();
      if (item === undefined) {
        this.#ended = true;
        return;
      }
      if (this.#last !== undefined && item.entry.contentHash <= this.#last) {
        throw new Error(`${item.entry.contentHash} is not behind ${this.#last}`);
      }
      this.#last = item.entry.contentHash;
      this.#items.push(item);
    }
  }
}
