/**
 * The schema of a pending row, in one place. Invariant: a row that this version does not understand is an error, never
 * an entry left out: it is the only trace of an upload until it is flushed.
 */

import { AriusError } from '../errors.ts';
import { type ContentHash, isHashText, parseChunkHash, parseContentHash } from '../hashing/hashes.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { AccessTier, Row, RowValues } from '../storage/ports.ts';

const PENDING_SCHEMA_VERSION = 1;

/** The row of a root's partition that is not an entry: the claim. `~` sorts behind every hash. */
export const CLAIM_ROW_KEY = '~claim';

export interface PendingRow {
  readonly entry: ShardEntry;
  /** Of exactly what was read: a row that was recorded again since has another one. */
  readonly etag: string;
}

/** The key of a row to remove: only if it still is the very row that was read. */
export interface PendingRowKey {
  readonly contentHash: ContentHash;
  readonly etag: string;
}

const TIERS: readonly AccessTier[] = ['hot', 'cool', 'cold', 'archive'];

/** Sizes are int64 columns. `recordedAt` is the service's clock, for the age of the backlog. */
export function valuesOfEntry(entry: ShardEntry, recordedAt: Date): RowValues {
  return {
    schemaVersion: PENDING_SCHEMA_VERSION,
    chunkHash: entry.chunkHash,
    originalSize: BigInt(entry.originalSize),
    chunkSize: BigInt(entry.chunkSize),
    tier: entry.tier,
    recordedAt: recordedAt.toISOString(),
  };
}

/** @throws AriusError `pending-not-flushed` naming the row */
export function entryOfRow(row: Row): ShardEntry {
  const { schemaVersion, chunkHash, originalSize, chunkSize, tier } = row.values;
  const knownTier = TIERS.find((known) => known === tier);
  if (
    schemaVersion !== PENDING_SCHEMA_VERSION ||
    !isHashText(row.rowKey) ||
    typeof chunkHash !== 'string' ||
    !isHashText(chunkHash) ||
    !isSize(originalSize) ||
    !isSize(chunkSize) ||
    knownTier === undefined
  ) {
    throw new AriusError(
      'pending-not-flushed',
      `The pending row ${row.partitionKey}/${row.rowKey} cannot be understood (schema version ${String(schemaVersion)})`,
      'Update the service if a newer one wrote the row; nothing is flushed or lost until then.',
    );
  }
  return {
    contentHash: parseContentHash(row.rowKey),
    chunkHash: parseChunkHash(chunkHash),
    originalSize: Number(originalSize),
    chunkSize: Number(chunkSize),
    tier: knownTier,
  };
}

export function isEntryRow(row: Row): boolean {
  return row.rowKey !== CLAIM_ROW_KEY;
}

function isSize(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER);
}
