/**
 * The holding pen: entries that are recorded but not yet in a shard. The only owner of the table's schema.
 * Invariant: a row is removed only with the ETag under which it was read, by the one caller that has read its entry
 * back from a shard (settle); nothing else here deletes.
 */

import pMap from 'p-map';
import type { ContentHash } from '../hashing/hashes.ts';
import { PENDING_READ_WORKERS, PENDING_REMOVE_WORKERS, TABLE_BATCH_ROWS_MAX, TABLE_PAGE_ROWS_MAX } from '../limits.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { Clock, RowOperation, Table } from '../storage/ports.ts';
import { allRoots, partitionOf, partitionRange, rootOfPartition } from './partitions.ts';
import {
  CLAIM_ROW_KEY,
  entryOfRow,
  isEntryRow,
  type PendingRow,
  type PendingRowKey,
  valuesOfEntry,
} from './pending-row.ts';
import { type RootClaim, RootClaims } from './root-claims.ts';

export interface PendingEntriesOptions {
  readonly table: Table;
  readonly repository: string;
  readonly clock: Clock;
}

export interface PendingPage {
  /** In hash order. */
  readonly rows: PendingRow[];
  /** Pass it as `after` to go on; undefined on the last page. */
  readonly next: ContentHash | undefined;
}

export interface RemovedRows {
  readonly removed: number;
  /** Recorded again since they were read: they stay. */
  readonly changed: number;
}

export interface PendingCensus {
  readonly rows: number;
  readonly oldest: Date | undefined;
}

export class PendingEntries {
  readonly #table: Table;
  readonly #repository: string;
  readonly #clock: Clock;
  readonly #claims: RootClaims;

  constructor(options: PendingEntriesOptions) {
    this.#table = options.table;
    this.#repository = options.repository;
    this.#clock = options.clock;
    this.#claims = new RootClaims(options.table, options.repository);
  }

  /** Last writer wins, also within one call. The caller has seen each chunk committed. Safe to repeat. */
  async record(entries: readonly ShardEntry[]): Promise<void> {
    const recordedAt = this.#clock.now();
    const distinct = new Map(entries.map((entry) => [entry.contentHash, entry]));
    const batches = [...groupByRoot(distinct.values())].flatMap(([root, group]) =>
      slices(group, TABLE_BATCH_ROWS_MAX).map((batch) => ({ root, batch })),
    );
    await pMap(
      batches,
      async ({ root, batch }) => {
        const operations = batch.map(
          (entry): RowOperation => ({
            kind: 'upsert',
            rowKey: entry.contentHash,
            values: valuesOfEntry(entry, recordedAt),
          }),
        );
        const result = await this.#table.batch(partitionOf(this.#repository, root), operations);
        if (result.outcome !== 'written') {
          throw new Error('An unconditional batch was answered with a conflict');
        }
      },
      { concurrency: PENDING_READ_WORKERS },
    );
  }

  /** One query over all roots. `complete`: these are all entries there are. */
  async firstPage(): Promise<{ entries: Map<ContentHash, ShardEntry>; complete: boolean }> {
    const page = await this.#table.queryPage(partitionRange(this.#repository));
    const entries = page.rows.filter(isEntryRow).map(entryOfRow);
    return {
      entries: new Map(entries.map((entry) => [entry.contentHash, entry])),
      complete: page.continuation === undefined,
    };
  }

  /** By key, PENDING_READ_WORKERS at a time; hashes that are not pending are left out. */
  async getMany(hashes: readonly ContentHash[]): Promise<Map<ContentHash, ShardEntry>> {
    const rows = await this.getRows(hashes);
    return new Map(Array.from(rows, ([hash, row]) => [hash, row.entry]));
  }

  /** The same, with the ETags. */
  async getRows(hashes: readonly ContentHash[]): Promise<Map<ContentHash, PendingRow>> {
    const rows = await pMap(
      new Set(hashes),
      (hash) => this.#table.get(partitionOf(this.#repository, hash.slice(0, 2)), hash),
      { concurrency: PENDING_READ_WORKERS },
    );
    const pending = rows.filter((row) => row !== undefined).map((row) => ({ entry: entryOfRow(row), etag: row.etag }));
    return new Map(pending.map((row) => [row.entry.contentHash, row]));
  }

  /** The roots that have pending entries, in order: one query when all fit a page, else one per root. */
  async roots(): Promise<string[]> {
    const page = await this.#table.queryPage({ ...partitionRange(this.#repository), select: [] });
    if (page.continuation === undefined) {
      const partitions = new Set(page.rows.filter(isEntryRow).map((row) => row.partitionKey));
      return [...partitions].flatMap((partition) => rootOfPartition(this.#repository, partition) ?? []);
    }
    const found = await pMap(allRoots(), async (root) => ((await this.#hasEntries(root)) ? [root] : []), {
      concurrency: PENDING_READ_WORKERS,
    });
    return found.flat();
  }

  /** One page of a root, in hash order; `after` is exclusive. */
  async page(root: string, after?: ContentHash): Promise<PendingPage> {
    const rows: PendingRow[] = [];
    let continuation: string | undefined;
    do {
      // A table may answer with an empty page and a continuation; an empty page of ours means the end.
      const page = await this.#table.queryPage({
        partition: partitionOf(this.#repository, root),
        rowBefore: CLAIM_ROW_KEY,
        pageSize: TABLE_PAGE_ROWS_MAX,
        ...(after === undefined ? {} : { rowAfter: after }),
        ...(continuation === undefined ? {} : { continuation }),
      });
      rows.push(...page.rows.map((row) => ({ entry: entryOfRow(row), etag: row.etag })));
      continuation = page.continuation;
    } while (rows.length === 0 && continuation !== undefined);
    return { rows, next: continuation === undefined ? undefined : rows.at(-1)?.entry.contentHash };
  }

  /** Removes the rows that are still exactly what was read, in batches. */
  async remove(root: string, rows: readonly PendingRowKey[]): Promise<RemovedRows> {
    const counts = await pMap(slices(rows, TABLE_BATCH_ROWS_MAX), (batch) => this.#removeBatch(root, batch), {
      concurrency: PENDING_REMOVE_WORKERS,
    });
    return {
      removed: counts.reduce((sum, count) => sum + count.removed, 0),
      changed: counts.reduce((sum, count) => sum + count.changed, 0),
    };
  }

  claimRoot(root: string, owner: string, now: Date): Promise<RootClaim | undefined> {
    return this.#claims.claim(root, owner, now);
  }

  renewClaim(claim: RootClaim, now: Date): Promise<RootClaim | undefined> {
    return this.#claims.renew(claim, now);
  }

  releaseRoot(claim: RootClaim): Promise<void> {
    return this.#claims.release(claim);
  }

  /** Reads every row's age, a page at a time. */
  async census(): Promise<PendingCensus> {
    let rows = 0;
    let oldest: string | undefined;
    let continuation: string | undefined;
    do {
      const page = await this.#table.queryPage({
        ...partitionRange(this.#repository),
        select: ['recordedAt'],
        ...(continuation === undefined ? {} : { continuation }),
      });
      for (const row of page.rows.filter(isEntryRow)) {
        rows += 1;
        const recordedAt = row.values.recordedAt;
        if (typeof recordedAt === 'string' && (oldest === undefined || recordedAt < oldest)) {
          oldest = recordedAt;
        }
      }
      continuation = page.continuation;
    } while (continuation !== undefined);
    return { rows, oldest: oldest === undefined ? undefined : new Date(oldest) };
  }

  async #hasEntries(root: string): Promise<boolean> {
    let continuation: string | undefined;
    do {
      const page = await this.#table.queryPage({
        partition: partitionOf(this.#repository, root),
        rowBefore: CLAIM_ROW_KEY,
        pageSize: 1,
        select: [],
        ...(continuation === undefined ? {} : { continuation }),
      });
      if (page.rows.length > 0) {
        return true;
      }
      continuation = page.continuation;
    } while (continuation !== undefined);
    return false;
  }

  async #removeBatch(root: string, batch: readonly PendingRowKey[]): Promise<RemovedRows> {
    const partition = partitionOf(this.#repository, root);
    const result = await this.#table.batch(
      partition,
      batch.map((row): RowOperation => ({ kind: 'delete', rowKey: row.contentHash, etag: row.etag })),
    );
    if (result.outcome === 'written') {
      return { removed: batch.length, changed: 0 };
    }
    // One row was recorded again, or a twin removed some: each row decides for itself.
    const outcomes = await pMap(batch, (row) => this.#table.delete(partition, row.contentHash, row.etag), {
      concurrency: PENDING_READ_WORKERS,
    });
    return {
      removed: outcomes.filter((outcome) => outcome === 'deleted').length,
      changed: outcomes.filter((outcome) => outcome === 'changed').length,
    };
  }
}

function groupByRoot(entries: Iterable<ShardEntry>): Map<string, ShardEntry[]> {
  const groups = new Map<string, ShardEntry[]>();
  for (const entry of entries) {
    const root = entry.contentHash.slice(0, 2);
    const group = groups.get(root) ?? [];
    group.push(entry);
    groups.set(root, group);
  }
  return groups;
}

function slices<T>(items: readonly T[], lengthMax: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / lengthMax) }, (_, index) =>
    items.slice(index * lengthMax, (index + 1) * lengthMax),
  );
}
