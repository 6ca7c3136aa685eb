/**
 * Settle of one root, after every root has uploaded and the layout version was bumped: a pending row is removed once its
 * very entry is readable from a shard.
 *
 * Only rows in this flush's manifest are considered, and each is removed only with the ETag under which the flush read
 * it: a row that was recorded since is not touched. That a shard exists proves nothing about such a row; a shard whose
 * ETag is the manifest's proves it for the rows the manifest names under it, and any other shard is read and searched.
 */

import { PENDING_REMOVE_WORKERS, TABLE_BATCH_ROWS_MAX } from '../limits.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { PendingRowKey } from '../pending/pending-row.ts';
import type { BlobContainer } from '../storage/ports.ts';
import type { Coverage } from './coverage.ts';
import type { FlushJob } from './flush.ts';
import type { IndexVersion, IndexVersionSource } from './index-version.ts';
import { listRoot, type RootListing, type ShardRef } from './listing.ts';
import { type ManifestSection, manifestBlobName } from './manifest.ts';
import { openManifest } from './manifest-reader.ts';
import { findEntry, sameEntry } from './shard.ts';
import type { ShardStore } from './shard-store.ts';

export interface SettleResult {
  readonly settled: number;
  /** Rows of the manifest that stay pending: recorded again since, or not settled yet (then `flushAgain`). */
  readonly remaining: number;
  /** The root must be flushed and settled once more before anything is published. */
  readonly flushAgain: boolean;
}

export interface SettleParts {
  readonly repository: string;
  readonly pending: PendingEntries;
  readonly container: BlobContainer;
  readonly staging: BlobContainer;
  readonly versions: IndexVersionSource;
  readonly shards: ShardStore;
  readonly coverage: Coverage;
}

export async function settleRoot(parts: SettleParts, root: string, job: FlushJob): Promise<SettleResult> {
  const sections = await openManifest(parts.staging, manifestBlobName(parts.repository, job.jobId, root), root);
  if (sections === undefined) {
    return { settled: 0, remaining: 0, flushAgain: true };
  }
  // Read before the listing: a claim must never say more than was true at its version.
  const version = await parts.versions.read();
  const listing = await listRoot(parts.container, root);
  const judged: Judged = { readable: [], recordedAgain: 0, unreadable: 0 };
  let settled = 0;
  let changed = 0;
  const removeReadable = async (): Promise<void> => {
    const removed = await parts.pending.remove(root, judged.readable.splice(0));
    settled += removed.removed;
    changed += removed.changed;
  };
  for await (const section of sections) {
    await judge(parts, listing, section, judged);
    claimSection(parts.coverage, version, listing, section);
    if (judged.readable.length >= REMOVE_ROWS_AT) {
      await removeReadable();
    }
  }
  await removeReadable();
  return {
    settled,
    remaining: changed + judged.recordedAgain + judged.unreadable,
    flushAgain: judged.unreadable > 0,
  };
}

/** Rows that may be removed are collected over shards, so that batches are full. */
const REMOVE_ROWS_AT = TABLE_BATCH_ROWS_MAX * PENDING_REMOVE_WORKERS;

interface Judged {
  /** Their entry was seen, or proven, in the one shard on their path. */
  readonly readable: PendingRowKey[];
  recordedAgain: number;
  unreadable: number;
}

async function judge(
  parts: SettleParts,
  listing: RootListing,
  section: ManifestSection,
  judged: Judged,
): Promise<void> {
  const toSearch = new Map<string, PendingRowKey[]>();
  for (const row of section.rows) {
    const [shard, ...deeper] = listing.router.shardsOnPath(row.contentHash);
    if (shard === undefined || deeper.length > 0) {
      // None: the shard is gone again. Several: a split is unfinished, and other clients see only the parent.
      judged.unreadable += 1;
    } else if (shard === section.prefix && listing.etagOf(shard) === section.etag) {
      judged.readable.push(row);
    } else {
      const rows = toSearch.get(shard) ?? [];
      rows.push(row);
      toSearch.set(shard, rows);
    }
  }
  for (const [prefix, rows] of toSearch) {
    await searchShard(parts, { prefix, etag: listing.etagOf(prefix) ?? '' }, rows, judged);
  }
}

/** Compares the whole entry: another entry of the same hash is not this row's. */
async function searchShard(
  parts: SettleParts,
  ref: ShardRef,
  rows: readonly PendingRowKey[],
  judged: Judged,
): Promise<void> {
  const pending = await parts.pending.getRows(rows.map((row) => row.contentHash));
  const shard = await parts.shards.load(ref);
  for (const row of rows) {
    const current = pending.get(row.contentHash);
    if (current === undefined) {
      // Removed already, by a twin of this settle.
    } else if (current.etag !== row.etag) {
      judged.recordedAgain += 1;
    } else {
      // A shard that changed since the listing proves nothing: what was read may no longer be on the path.
      const stored = shard?.etag === ref.etag ? findEntry(shard.entries, row.contentHash) : undefined;
      if (stored !== undefined && sameEntry(stored, current.entry)) {
        judged.readable.push(row);
      } else {
        judged.unreadable += 1;
      }
    }
  }
}

/** What settle has just validated need not be validated by the next lookup. */
function claimSection(
  coverage: Coverage,
  version: IndexVersion,
  listing: RootListing,
  { prefix, etag }: ManifestSection,
): void {
  if (listing.etagOf(prefix) === etag && listing.router.isAlone(prefix)) {
    coverage.add({ prefix, version, shards: [{ prefix, etag }] });
  }
}
