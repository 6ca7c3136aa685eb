/**
 * The job queue on one table. PartitionKey is the repository; `job_{operationId}` is the job, `open_{lane}_{queued
 * at}_{operationId}` stands beside it while it has not ended, so that the oldest open job is the first row of a range.
 * Both change in one transaction. Progress marks have a partition of their own, `{repository}_{operationId}`: an
 * underscore appears in no repository name.
 */

import { OPEN_ROWS_READ_MAX, TABLE_BATCH_ROWS_MAX, TABLE_PAGE_ROWS_MAX } from '../limits.ts';
import type { Row, RowOperation, RowValues, Table } from '../storage/ports.ts';
import {
  type JobChanges,
  type JobFacts,
  type JobKind,
  type JobLane,
  type JobOutcome,
  type JobProgress,
  type JobQueue,
  type JobRecord,
  type JobState,
  laneOf,
  type NewJob,
  type StoredJob,
} from './job-queue.ts';
import {
  jsonColumn,
  jsonText,
  numberColumn,
  optionalTextColumn,
  textColumn,
  timeColumn,
  wordColumn,
} from './row-columns.ts';

const SCHEMA_VERSION = 1;
const JOB_PREFIX = 'job_';
const KINDS: readonly JobKind[] = ['complete', 'flush', 'commit-chunk'];
const STATES: readonly JobState[] = ['waiting', 'running', 'succeeded', 'failed'];

export class TableJobQueue implements JobQueue {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  async add(job: NewJob): Promise<StoredJob> {
    const record: JobRecord = {
      repository: job.repository,
      operationId: job.operationId,
      kind: job.kind,
      state: 'waiting',
      phase: 'waiting',
      progress: null,
      createdAt: job.now,
      updatedAt: job.now,
      queuedAt: job.now,
      attempt: 0,
      queuedAttempt: 0,
      claim: null,
      claimedAtMs: 0,
      facts: job.facts,
      notes: {},
      result: null,
      error: null,
    };
    await this.#table.batch(job.repository, [
      { kind: 'insert', rowKey: jobKey(record), values: jobValues(record) },
      { kind: 'insert', rowKey: openKey(record), values: openValues(record) },
    ]);
    return await this.#read(job.repository, job.operationId);
  }

  async get(repository: string, operationId: string): Promise<StoredJob | undefined> {
    const row = await this.#table.get(repository, JOB_PREFIX + operationId);
    return row === undefined ? undefined : jobOf(row);
  }

  async openJobs(repository: string, lane: JobLane, max: number): Promise<readonly StoredJob[]> {
    const page = await this.#table.queryPage({
      partition: repository,
      rowFrom: openPrefix(lane),
      rowBefore: `${openPrefix(lane)}~`,
      pageSize: Math.min(max, OPEN_ROWS_READ_MAX),
    });
    const jobs: StoredJob[] = [];
    for (const row of page.rows) {
      const job = await this.get(repository, textColumn(row, 'operationId'));
      if (job !== undefined) {
        jobs.push(job);
      }
    }
    return jobs;
  }

  async claim(job: StoredJob, owner: string, beganAtMs: number, now: Date): Promise<StoredJob | undefined> {
    const attempt = job.attempt + 1;
    const claim = `${owner}:${attempt}`;
    return await this.#replace(job, { state: 'running', attempt, claim, claimedAtMs: beganAtMs, updatedAt: now }, []);
  }

  async update(job: StoredJob, changes: JobChanges, now: Date): Promise<StoredJob | undefined> {
    return await this.#replace(job, { ...changes, updatedAt: now }, []);
  }

  async finish(job: StoredJob, outcome: JobOutcome, now: Date): Promise<StoredJob | undefined> {
    const open = await this.#table.get(job.repository, openKey(job));
    const closing: RowOperation[] =
      open === undefined ? [] : [{ kind: 'delete', rowKey: open.rowKey, etag: open.etag }];
    const ended =
      outcome.state === 'succeeded'
        ? { state: outcome.state, phase: 'done', result: outcome.result, error: null }
        : { state: outcome.state, result: null, error: outcome.error };
    return await this.#replace(job, { ...ended, progress: null, claim: null, updatedAt: now }, closing);
  }

  async restart(job: StoredJob, now: Date): Promise<StoredJob | undefined> {
    const again = { state: 'waiting', phase: 'waiting', error: null, updatedAt: now } as const;
    const waiting = { ...again, queuedAt: now, queuedAttempt: job.attempt };
    const next: JobRecord = { ...job, ...waiting };
    return await this.#replace(job, waiting, [{ kind: 'insert', rowKey: openKey(next), values: openValues(next) }]);
  }

  async markDone(repository: string, operationId: string, phase: string, item: string): Promise<void> {
    await this.#table.upsert(progressPartition(repository, operationId), `${phase}_${item}`, {});
  }

  async countDone(repository: string, operationId: string, phase: string): Promise<number> {
    const page = await this.#table.queryPage({
      partition: progressPartition(repository, operationId),
      rowFrom: `${phase}_`,
      rowBefore: `${phase}_~`,
      pageSize: TABLE_PAGE_ROWS_MAX,
    });
    return page.rows.length;
  }

  async forgetProgress(repository: string, operationId: string): Promise<void> {
    const partition = progressPartition(repository, operationId);
    for (;;) {
      const { rows } = await this.#table.queryPage({ partition, pageSize: TABLE_BATCH_ROWS_MAX });
      if (rows.length === 0) {
        return;
      }
      const removal = rows.map((row): RowOperation => ({ kind: 'delete', rowKey: row.rowKey, etag: row.etag }));
      if ((await this.#table.batch(partition, removal)).outcome === 'conflict') {
        // Somebody else removes them, or a late step still marks: what stays is a few tiny rows that nobody reads.
        return;
      }
    }
  }

  async #read(repository: string, operationId: string): Promise<StoredJob> {
    const job = await this.get(repository, operationId);
    if (job === undefined) {
      throw new Error(`The job ${operationId} of ${repository} is not there after it was added.`);
    }
    return job;
  }

  async #replace(
    job: StoredJob,
    changes: Partial<JobRecord>,
    beside: readonly RowOperation[],
  ): Promise<StoredJob | undefined> {
    const next: JobRecord = { ...job, ...changes };
    const values = jobValues(next);
    if (beside.length === 0) {
      const single = await this.#table.replace(job.repository, jobKey(job), values, job.etag);
      return single.outcome === 'written' ? { ...next, etag: single.etag } : undefined;
    }
    const result = await this.#table.batch(job.repository, [
      { kind: 'replace', rowKey: jobKey(job), values, etag: job.etag },
      ...beside,
    ]);
    return result.outcome === 'written' ? await this.get(job.repository, job.operationId) : undefined;
  }
}

function jobKey(job: JobRecord): string {
  return JOB_PREFIX + job.operationId;
}

function openPrefix(lane: JobLane): string {
  return `open_${lane}_`;
}

function openKey(job: JobRecord): string {
  return `${openPrefix(laneOf(job.kind))}${job.queuedAt.toISOString()}_${job.operationId}`;
}

function openValues(job: JobRecord): RowValues {
  return { schemaVersion: SCHEMA_VERSION, operationId: job.operationId };
}

function progressPartition(repository: string, operationId: string): string {
  return `${repository}_${operationId}`;
}

function jobValues(job: JobRecord): RowValues {
  return {
    schemaVersion: SCHEMA_VERSION,
    kind: job.kind,
    state: job.state,
    phase: job.phase,
    progress: jsonText(job.progress),
    createdAt: job.createdAt.toISOString(),
    updatedAt: job.updatedAt.toISOString(),
    queuedAt: job.queuedAt.toISOString(),
    attempt: job.attempt,
    queuedAttempt: job.queuedAttempt,
    claim: job.claim ?? '',
    // Text, because a table keeps whole numbers of this size only as 64-bit integers.
    claimedAtMs: String(job.claimedAtMs),
    facts: jsonText(job.facts),
    notes: jsonText(job.notes),
    result: jsonText(job.result),
    error: jsonText(job.error),
  };
}

function jobOf(row: Row): StoredJob {
  return {
    repository: row.partitionKey,
    operationId: row.rowKey.slice(JOB_PREFIX.length),
    kind: wordColumn(row, 'kind', KINDS),
    state: wordColumn(row, 'state', STATES),
    phase: textColumn(row, 'phase'),
    progress: jsonColumn<JobProgress>(row, 'progress'),
    createdAt: timeColumn(row, 'createdAt'),
    updatedAt: timeColumn(row, 'updatedAt'),
    queuedAt: timeColumn(row, 'queuedAt'),
    attempt: numberColumn(row, 'attempt'),
    queuedAttempt: numberColumn(row, 'queuedAttempt'),
    claim: optionalTextColumn(row, 'claim'),
    claimedAtMs: Number(textColumn(row, 'claimedAtMs')),
    facts: jsonColumn<JobFacts>(row, 'facts') ?? {},
    notes: jsonColumn<JobFacts>(row, 'notes') ?? {},
    result: jsonColumn<Record<string, unknown>>(row, 'result'),
    error: jsonColumn(row, 'error'),
    etag: row.etag,
  };
}
