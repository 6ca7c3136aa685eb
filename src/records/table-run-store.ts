/**
 * The run store on one table. PartitionKey is the repository; `run_{runId}` is the run, `open_{runId}` stands beside it
 * while the run has not ended. Both change in one transaction, so neither is ever without the other.
 */

import { OPEN_ROWS_READ_MAX } from '../limits.ts';
import type { AccessTier, Row, RowOperation, RowValues, Table } from '../storage/ports.ts';
import {
  booleanColumn,
  jsonColumn,
  jsonText,
  optionalTextColumn,
  textColumn,
  timeColumn,
  wordColumn,
} from './row-columns.ts';
import {
  isEnded,
  type OpenRun,
  type RunChanges,
  type RunCompletion,
  type RunRecord,
  type RunState,
  type RunStore,
  type StoredRun,
} from './run-store.ts';

const SCHEMA_VERSION = 1;
const RUN_PREFIX = 'run_';
const OPEN_PREFIX = 'open_';
/** Sorts after every row key with the prefix: `~` is above all characters of a run id. */
const OPEN_END = 'open_~';

const STATES: readonly RunState[] = ['started', 'completing', 'completed', 'failed', 'expired'];
const TIERS: readonly AccessTier[] = ['hot', 'cool', 'cold', 'archive'];

export class TableRunStore implements RunStore {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  async insert(run: RunRecord): Promise<'inserted' | 'exists'> {
    const result = await this.#table.batch(run.repository, [
      { kind: 'insert', rowKey: RUN_PREFIX + run.runId, values: runValues(run) },
      { kind: 'upsert', rowKey: OPEN_PREFIX + run.runId, values: openValues(run, false) },
    ]);
    return result.outcome === 'written' ? 'inserted' : 'exists';
  }

  async get(repository: string, runId: string): Promise<StoredRun | undefined> {
    const row = await this.#table.get(repository, RUN_PREFIX + runId);
    return row === undefined ? undefined : runOf(row);
  }

  async update(run: StoredRun, changes: RunChanges): Promise<StoredRun | undefined> {
    const next: RunRecord = { ...run, ...changes };
    const rowKey = RUN_PREFIX + run.runId;
    const values = runValues(next);
    if (isEnded(run.state) === isEnded(next.state)) {
      const single = await this.#table.replace(run.repository, rowKey, values, run.etag);
      return single.outcome === 'written' ? { ...next, etag: single.etag } : undefined;
    }
    const operations: RowOperation[] = [{ kind: 'replace', rowKey, values, etag: run.etag }];
    if (isEnded(next.state)) {
      const open = await this.#table.get(run.repository, OPEN_PREFIX + run.runId);
      if (open !== undefined) {
        operations.push({ kind: 'delete', rowKey: open.rowKey, etag: open.etag });
      }
    } else {
      operations.push({ kind: 'upsert', rowKey: OPEN_PREFIX + run.runId, values: openValues(next, false) });
    }
    const result = await this.#table.batch(run.repository, operations);
    return result.outcome === 'written' ? await this.get(run.repository, run.runId) : undefined;
  }

  async openRuns(repository: string): Promise<readonly OpenRun[]> {
    return (await this.#openRows(repository)).map(openRunOf);
  }

  async markRecovered(repository: string, source: string, startedBefore: Date): Promise<void> {
    for (const row of await this.#openRows(repository)) {
      const run = openRunOf(row);
      if (!run.recovered && run.source === source && run.startedAt < startedBefore) {
        // A conflict means that the run ended just now: nothing is left to mark.
        await this.#table.replace(repository, row.rowKey, { ...row.values, recovered: true }, row.etag);
      }
    }
  }

  async #openRows(repository: string): Promise<readonly Row[]> {
    const page = await this.#table.queryPage({
      partition: repository,
      rowFrom: OPEN_PREFIX,
      rowBefore: OPEN_END,
      pageSize: OPEN_ROWS_READ_MAX,
    });
    return page.rows;
  }
}

function openValues(run: RunRecord, recovered: boolean): RowValues {
  return {
    schemaVersion: SCHEMA_VERSION,
    source: run.source,
    startedAt: run.startedAt.toISOString(),
    recovered,
  };
}

function openRunOf(row: Row): OpenRun {
  return {
    runId: row.rowKey.slice(OPEN_PREFIX.length),
    source: textColumn(row, 'source'),
    startedAt: timeColumn(row, 'startedAt'),
    recovered: booleanColumn(row, 'recovered'),
  };
}

function runValues(run: RunRecord): RowValues {
  return {
    schemaVersion: SCHEMA_VERSION,
    source: run.source,
    tier: run.tier,
    state: run.state,
    startedAt: run.startedAt.toISOString(),
    lastActiveAt: run.lastActiveAt.toISOString(),
    restarted: run.restarted,
    newestSnapshot: run.newestSnapshot ?? '',
    completion: jsonText(run.completion),
    operationId: run.operationId ?? '',
    snapshot: run.snapshot ?? '',
  };
}

function runOf(row: Row): StoredRun {
  return {
    repository: row.partitionKey,
    runId: row.rowKey.slice(RUN_PREFIX.length),
    source: textColumn(row, 'source'),
    tier: wordColumn(row, 'tier', TIERS),
    state: wordColumn(row, 'state', STATES),
    startedAt: timeColumn(row, 'startedAt'),
    lastActiveAt: timeColumn(row, 'lastActiveAt'),
    restarted: booleanColumn(row, 'restarted'),
    newestSnapshot: optionalTextColumn(row, 'newestSnapshot'),
    completion: jsonColumn<RunCompletion>(row, 'completion'),
    operationId: optionalTextColumn(row, 'operationId'),
    snapshot: optionalTextColumn(row, 'snapshot'),
    etag: row.etag,
  };
}
