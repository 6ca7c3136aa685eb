/**
 * The chunk index of one repository, and its only door: nobody outside computes a prefix or touches a shard. What it
 * keeps in memory is a cache that may be dropped at any moment; truth is in the shards and the pending entries.
 */

import { setTimeout as delay } from 'node:timers/promises';
import pLimit, { type LimitFunction } from 'p-limit';
import type { BodyCodec } from '../codec/body-codec.ts';
import { AriusError } from '../errors.ts';
import type { ContentHash } from '../hashing/hashes.ts';
import { CACHED_SHARD_ENTRIES_MAX, FLUSH_WORKERS, MAX_SHARD_ENTRY_COUNT } from '../limits.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { BlobContainer, Clock } from '../storage/ports.ts';
import type { Pacing } from './backoff.ts';
import { Coverage } from './coverage.ts';
import { type FlushJob, flushRoot } from './flush.ts';
import type { FlushCounters } from './flush-counts.ts';
import type { IndexVersion, IndexVersionSource } from './index-version.ts';
import { findInterruptedSplits } from './listing.ts';
import { lookUp } from './lookup.ts';
import { isRoot } from './router.ts';
import { type SettleResult, settleRoot } from './settle.ts';
import { ShardCache } from './shard-cache.ts';
import { ShardStore } from './shard-store.ts';
import { SharedListings } from './shared-listings.ts';

export type { FlushJob } from './flush.ts';
export type { FlushCounters } from './flush-counts.ts';
export type { IndexVersion, IndexVersionSource } from './index-version.ts';
export type { SettleResult } from './settle.ts';

export interface ChunkIndexOptions {
  readonly repository: string;
  readonly container: BlobContainer;
  /** For the manifests of flushes. */
  readonly staging: BlobContainer;
  readonly pending: PendingEntries;
  readonly versions: IndexVersionSource;
  readonly codec: BodyCodec;
  readonly clock: Clock;
  /** Other than the format's 1024 in tests only. */
  readonly maxShardEntryCount?: number;
  readonly cachedEntriesMax?: number;
  /** In [0, 1): spreads retries. Given from outside, like the clock, so that a simulation repeats. */
  readonly random: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

/** Everything that may be dropped, dropped as one: whoever still works with the old set adds nothing to the new one. */
interface Caches {
  readonly coverage: Coverage;
  readonly listings: SharedListings;
  readonly shards: ShardStore;
}

export class ChunkIndex {
  readonly #options: ChunkIndexOptions;
  readonly #pacing: Pacing;
  readonly #uploads: LimitFunction = pLimit(FLUSH_WORKERS);
  #caches: Caches;

  constructor(options: ChunkIndexOptions) {
    this.#options = options;
    this.#pacing = {
      sleep: options.sleep ?? (async (ms) => void (await delay(ms))),
      random: options.random,
    };
    this.#caches = newCaches(options);
  }

  /**
   * Known entries by hash; a hash that is not there is a trusted miss.
   * @throws AriusError `chunk-index-corrupt` naming the shard; `busy` when shards keep changing
   */
  async lookup(hashes: readonly ContentHash[]): Promise<ReadonlyMap<ContentHash, ShardEntry>> {
    const { pending, versions } = this.#options;
    return await lookUp({ pending, versions, pacing: this.#pacing, ...this.#caches }, hashes);
  }

  /** The roots with pending entries, and those in which a split was interrupted; sorted. */
  async rootsToFlush(): Promise<string[]> {
    const [pending, interrupted] = await Promise.all([
      this.#options.pending.roots(),
      findInterruptedSplits(this.#options.container),
    ]);
    return [...new Set([...pending, ...interrupted])].sort();
  }

  /** @throws AriusError `pending-not-flushed`: the rows stay pending; `chunk-index-corrupt` */
  async flushRoot(root: string, job: FlushJob): Promise<FlushCounters> {
    checkRoot(root);
    const {
      repository,
      container,
      staging,
      pending,
      clock,
      maxShardEntryCount = MAX_SHARD_ENTRY_COUNT,
    } = this.#options;
    const parts = { repository, container, staging, pending, clock, maxShardEntryCount };
    const { shards } = this.#caches;
    return await flushRoot({ ...parts, shards, uploads: this.#uploads, pacing: this.#pacing }, root, job);
  }

  /** After every root of the flush has uploaded, and the layout version was bumped. */
  async settleRoot(root: string, job: FlushJob): Promise<SettleResult> {
    checkRoot(root);
    const { repository, container, staging, pending, versions } = this.#options;
    const { coverage, shards } = this.#caches;
    return await settleRoot({ repository, container, staging, pending, versions, coverage, shards }, root, job);
  }

  /** After a publication: what was validated at `from` is trusted at `to`, without asking again. */
  promote(from: IndexVersion, to: IndexVersion): void {
    this.#caches.coverage.promote(from, to);
  }

  /** Drops decoded shards, claims and listings; never pending entries. */
  invalidateCaches(): void {
    this.#caches = newCaches(this.#options);
  }
}

function newCaches(options: ChunkIndexOptions): Caches {
  const cache = new ShardCache(options.cachedEntriesMax ?? CACHED_SHARD_ENTRIES_MAX);
  return {
    coverage: new Coverage(),
    listings: new SharedListings(options.container),
    shards: new ShardStore(options.container, options.codec, cache),
  };
}

function checkRoot(root: string): void {
  if (!isRoot(root)) {
    throw new AriusError(
      'bad-request',
      `${JSON.stringify(root)} is not a root`,
      'A root is two lower-case hex characters.',
    );
  }
}
