/**
 * One attempt at flushing a claimed root. The order is what keeps every entry readable at every moment, also for a
 * reader that knows only that the parent wins:
 *   rows → fresh listing → merge and cut → all leaves of a target up → only then deletes, deepest first, the parent last
 *   → listing again → manifest.
 * Every write and delete is conditional on what was merged; any other state throws ShardConflict, and the caller starts
 * again from a fresh listing.
 */

import type { LimitFunction } from 'p-limit';
import { FLUSH_WORKERS, PREFIX_LOAD_WORKERS } from '../limits.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { PendingRowKey } from '../pending/pending-row.ts';
import type { BlobContainer } from '../storage/ports.ts';
import type { ClaimedRoot } from './claimed-root.ts';
import { ShardConflict } from './conflict.ts';
import type { FlushCounts } from './flush-counts.ts';
import { targetsOf, upcomingShards } from './flush-targets.ts';
import { cutLeaves, type Leaf } from './leaf-builder.ts';
import { listRoot, type RootListing, type ShardRef } from './listing.ts';
import type { ManifestSection, ManifestWriter } from './manifest.ts';
import { OrderedWindow } from './ordered-window.ts';
import { PendingCursor } from './pending-cursor.ts';
import type { ShardTarget } from './router.ts';
import { ShardPrefetch } from './shard-prefetch.ts';
import type { LoadedShard, ShardStore } from './shard-store.ts';
import { type MergedItem, type MergedShard, TargetMerge } from './target-merge.ts';

export interface FlushParts {
  readonly pending: PendingEntries;
  readonly container: BlobContainer;
  readonly shards: ShardStore;
  readonly maxShardEntryCount: number;
  /** Bounds the shard writes in flight; shared by all flushes of the instance. */
  readonly uploads: LimitFunction;
}

export class FlushAttempt {
  readonly #parts: FlushParts;
  readonly #root: string;
  readonly #claimed: ClaimedRoot;
  readonly #manifest: ManifestWriter;
  readonly #counts: FlushCounts;
  readonly #prefetch = new ShardPrefetch((ref) => this.#load(ref), PREFIX_LOAD_WORKERS);
  /** In hash order: sections for the manifest, and the deletes of a target, which have none. */
  readonly #steps = new OrderedWindow<ManifestSection | undefined>(FLUSH_WORKERS, async (section) => {
    if (section !== undefined) {
      await this.#manifest.add(section);
    }
  });
  /** What the rebuilt ranges hold when this attempt is done, and nothing else. */
  readonly #leaves = new Map<string, string>();
  readonly #rebuiltTargets: string[] = [];
  #changedShards = false;

  constructor(parts: FlushParts, root: string, claimed: ClaimedRoot, manifest: ManifestWriter, counts: FlushCounts) {
    this.#parts = parts;
    this.#root = root;
    this.#claimed = claimed;
    this.#manifest = manifest;
    this.#counts = counts;
  }

  /** When it ends, in whatever way, nothing of it is in flight. @throws ShardConflict, ClaimLost */
  async run(): Promise<void> {
    try {
      // Rows before the listing costs nothing and needs no care: the claim keeps the shards as the listing says.
      const rows = await PendingCursor.open(this.#parts.pending, this.#root);
      const listing = await listRoot(this.#parts.container, this.#root);
      for (const target of targetsOf(rows, listing)) {
        await this.#rebuild(target, rows, listing);
      }
      this.#counts.rowsRead += rows.rowsRead;
      await this.#steps.drain();
    } finally {
      await this.#steps.settled();
      await this.#prefetch.settled();
    }
    if (this.#changedShards) {
      await this.#verify();
    }
    const committed = await this.#manifest.commit();
    if (committed.outcome === 'conflict') {
      throw new ShardConflict(`The manifest of ${this.#root} was written by somebody else`);
    }
  }

  async #rebuild(target: ShardTarget, rows: PendingCursor, listing: RootListing): Promise<void> {
    const merged = listing.refsWithin(target.prefix);
    const merge = new TargetMerge(target.prefix, rows, merged, (ref) => {
      const shard = this.#prefetch.take(ref);
      this.#prefetch.ahead(upcomingShards(target, merged.slice(merged.indexOf(ref) + 1), rows, listing));
      return shard;
    });
    this.#rebuiltTargets.push(target.prefix);
    const leafPrefixes = new Set<string>();
    const uploads: Promise<unknown>[] = [];
    for await (const leaf of cutLeaves(target.prefix, merge, this.#parts.maxShardEntryCount)) {
      leafPrefixes.add(leaf.prefix);
      const { section } = await this.#startLeaf(leaf, merge.mergedShard(leaf.prefix));
      const uploaded = section.then(() => undefined);
      // Its failure is met in order, by the steps.
      uploaded.catch(() => undefined);
      uploads.push(uploaded);
      await this.#steps.add(section);
    }
    const replaced = merged.filter((ref) => !leafPrefixes.has(ref.prefix));
    // Only when all leaves of the target are up: until its last delete, the parent answers for the whole range.
    await this.#steps.add(Promise.all(uploads).then(() => this.#deleteReplaced(target, replaced)));
  }

  /**
   * Resolves when the upload has begun, not when it is done: so at most one leaf of this root waits for a place, and the
   * leaves held by all flushes of the instance stay bounded.
   */
  async #startLeaf(
    leaf: Leaf<MergedItem>,
    stored: MergedShard | undefined,
  ): Promise<{ readonly section: Promise<ManifestSection> }> {
    if (stored !== undefined && isUnchanged(leaf, stored)) {
      return { section: Promise.resolve(this.#sectionOf(leaf, stored.etag)) };
    }
    return await new Promise((resolve) => {
      const section = this.#parts.uploads(async () => {
        resolve({ section });
        return this.#sectionOf(leaf, await this.#upload(leaf, stored));
      });
      section.catch(() => undefined);
    });
  }

  async #upload(leaf: Leaf<MergedItem>, stored: MergedShard | undefined): Promise<string> {
    this.#changedShards = true;
    const entries = leaf.items.map((item) => item.entry);
    const condition = stored === undefined ? ({ absent: true } as const) : { etag: stored.etag };
    const { result, bytes } = await this.#claimed.write(({ shards }) =>
      this.#parts.shards.write(shards, leaf.prefix, entries, condition),
    );
    if (result.outcome === 'conflict') {
      throw new ShardConflict(`The shard ${leaf.prefix} is not what was merged`);
    }
    this.#counts.shardsWritten += 1;
    this.#counts.bytesWritten += bytes;
    return result.etag;
  }

  #sectionOf(leaf: Leaf<MergedItem>, etag: string): ManifestSection {
    this.#leaves.set(leaf.prefix, etag);
    const rows = leaf.items.flatMap(({ entry, rowEtag }): PendingRowKey[] =>
      rowEtag === undefined ? [] : [{ contentHash: entry.contentHash, etag: rowEtag }],
    );
    return { prefix: leaf.prefix, etag, rows };
  }

  /** Deepest first, the split parent last: a parent that is gone before a stale deeper shard would let that one answer. */
  async #deleteReplaced(target: ShardTarget, replaced: readonly ShardRef[]): Promise<undefined> {
    const lengths = [...new Set(replaced.map((ref) => ref.prefix.length))].sort((left, right) => right - left);
    for (const length of lengths) {
      const level = replaced.filter((ref) => ref.prefix.length === length);
      const deletes = level.map((ref) => this.#parts.uploads(() => this.#delete(ref)));
      // All of a level have an outcome before anything else happens, also when one of them fails.
      await Promise.allSettled(deletes);
      await Promise.all(deletes);
    }
    if (replaced.some((ref) => ref.prefix === target.prefix)) {
      this.#counts.shardsSplit += 1;
    }
    return undefined;
  }

  async #delete(ref: ShardRef): Promise<void> {
    this.#changedShards = true;
    const outcome = await this.#claimed.write(({ shards }) => this.#parts.shards.delete(shards, ref));
    if (outcome === 'changed') {
      throw new ShardConflict(`The shard ${ref.prefix} is not what was merged`);
    }
    if (outcome === 'deleted') {
      this.#counts.shardsDeleted += 1;
    }
  }

  /** Was somebody else here meanwhile? Then what was cut may not be all there is. */
  async #verify(): Promise<void> {
    const listing = await listRoot(this.#parts.container, this.#root);
    if (!listing.router.isLegalPartition()) {
      throw new ShardConflict(`In ${this.#root} a shard appeared beside its parent`);
    }
    const found = this.#rebuiltTargets.flatMap((prefix) => listing.refsWithin(prefix));
    if (found.length !== this.#leaves.size || found.some((ref) => this.#leaves.get(ref.prefix) !== ref.etag)) {
      throw new ShardConflict(`In ${this.#root} a shard changed that was just written`);
    }
  }

  async #load(ref: ShardRef): Promise<LoadedShard> {
    const shard = await this.#parts.shards.load(ref);
    if (shard?.etag !== ref.etag) {
      throw new ShardConflict(`The shard ${ref.prefix} changed after it was listed`);
    }
    if (shard.downloadedBytes > 0) {
      this.#counts.shardsRead += 1;
      this.#counts.bytesRead += shard.downloadedBytes;
    }
    return shard;
  }
}

/** What would be written is what is stored: a flush that runs twice writes once. */
function isUnchanged(leaf: Leaf<MergedItem>, stored: MergedShard): boolean {
  return stored.entryCount === leaf.items.length && leaf.items.every((item) => item.heldBy.includes(leaf.prefix));
}
