/** Which ranges of a root a flush rebuilds, in order, and which shards it will need next. */

import type { RootListing, ShardRef } from './listing.ts';
import type { PendingCursor } from './pending-cursor.ts';
import { boundsOf, type ShardTarget } from './router.ts';

/**
 * The targets the rows route to, and every interrupted split (a parent beside deeper shards): other clients see the
 * parent only, so it is healed before a snapshot is published. Targets never nest, so each comes once. Whoever takes a
 * target passes its rows before asking for the next one.
 */
export function* targetsOf(rows: PendingCursor, listing: RootListing): Generator<ShardTarget> {
  const interrupted = listing.router.interruptedSplits();
  for (;;) {
    const row = rows.head;
    const [split] = interrupted;
    const target = row === undefined ? undefined : listing.router.resolveTarget(row.entry.contentHash);
    if (split !== undefined && (target === undefined || split <= target.prefix)) {
      interrupted.shift();
      yield { prefix: split, exists: true };
    } else if (target !== undefined) {
      yield target;
    } else {
      return;
    }
  }
}

/** The rest of the current target's shards, then those of the targets of the rows already read. */
export function* upcomingShards(
  current: ShardTarget,
  rest: readonly ShardRef[],
  rows: PendingCursor,
  listing: RootListing,
): Generator<ShardRef> {
  yield* rest;
  let passed = boundsOf(current.prefix).last;
  for (const { entry } of rows.upcoming()) {
    if (entry.contentHash > passed) {
      const { prefix } = listing.router.resolveTarget(entry.contentHash);
      yield* listing.refsWithin(prefix);
      passed = boundsOf(prefix).last;
    }
  }
}
