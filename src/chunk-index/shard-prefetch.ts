/** Loads shards a few ahead of the merge that needs them in order; a bounded number is held. */

import type { ShardRef } from './listing.ts';
import type { LoadedShard } from './shard-store.ts';

export class ShardPrefetch {
  readonly #load: (ref: ShardRef) => Promise<LoadedShard>;
  readonly #aheadMax: number;
  readonly #started = new Map<string, Promise<LoadedShard>>();

  constructor(load: (ref: ShardRef) => Promise<LoadedShard>, aheadMax: number) {
    this.#load = load;
    this.#aheadMax = aheadMax;
  }

  /** Starts as many as there is room for; takes no more from the iterable than it has to. */
  ahead(refs: Iterable<ShardRef>): void {
    if (this.#started.size >= this.#aheadMax) {
      return;
    }
    for (const ref of refs) {
      void this.#start(ref);
      if (this.#started.size >= this.#aheadMax) {
        return;
      }
    }
  }

  take(ref: ShardRef): Promise<LoadedShard> {
    const started = this.#start(ref);
    this.#started.delete(ref.prefix);
    return started;
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#started.values());
  }

  #start(ref: ShardRef): Promise<LoadedShard> {
    let started = this.#started.get(ref.prefix);
    if (started === undefined) {
      started = this.#load(ref);
      // Met when it is taken.
      started.catch(() => undefined);
      this.#started.set(ref.prefix, started);
    }
    return started;
  }
}
