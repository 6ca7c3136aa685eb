/**
 * What the service does of its own accord: waking jobs whose wake was lost, flushing entries that have been pending for
 * long, and ending runs that nobody will complete. All of it may run twice, and none of it is needed for correctness.
 */

import {
  JOB_SILENT_MS,
  OPEN_ROWS_READ_MAX,
  PENDING_AGE_FLUSH_MS,
  PENDING_ROWS_EARLY_FLUSH,
  RUN_EXPIRES_MS,
} from '../limits.ts';
import type { JobQueue, StoredJob } from '../records/job-queue.ts';
import type { RunStore } from '../records/run-store.ts';
import type { Clock } from '../storage/ports.ts';
import type { OpenRepositories } from './open-repository.ts';
import type { RepositoryStates } from './repository-states.ts';

export interface HousekeepingParts {
  readonly repositories: OpenRepositories;
  readonly states: RepositoryStates;
  readonly runs: RunStore;
  readonly jobs: JobQueue;
  readonly clock: Clock;
}

/** Orchestrations that have something to do. */
export interface WaitingWork {
  readonly repository: string;
  readonly dispatcher: boolean;
  /** Operations that run beside the dispatcher. */
  readonly commits: readonly string[];
}

export class Housekeeping {
  readonly #parts: HousekeepingParts;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  async repositoryNames(): Promise<readonly string[]> {
    return (await this.#parts.states.list()).map((state) => state.name);
  }

  async waitingWork(repository: string): Promise<WaitingWork> {
    const { jobs } = this.#parts;
    const [next] = await jobs.openJobs(repository, 'dispatched', 1);
    const beside = await jobs.openJobs(repository, 'beside', OPEN_ROWS_READ_MAX);
    const commits = beside.filter((job) => this.#wantsWaking(job)).map((job) => job.operationId);
    return { repository, dispatcher: next !== undefined && this.#wantsWaking(next), commits };
  }

  /** A running job that says so is at work. One that has been silent may have lost its orchestration; asking is free. */
  #wantsWaking(job: StoredJob): boolean {
    const silentMs = this.#parts.clock.now().getTime() - job.updatedAt.getTime();
    return job.state === 'waiting' || silentMs > JOB_SILENT_MS;
  }

  /** @returns the job that was queued; undefined when nothing is due, or a flush is queued already */
  async queueFlushIfDue(repositoryName: string): Promise<StoredJob | undefined> {
    const { clock, jobs } = this.#parts;
    const repository = await this.#parts.repositories.get(repositoryName);
    const { rows, oldest } = await repository.pending.census();
    const now = clock.now();
    const isOld = oldest !== undefined && now.getTime() - oldest.getTime() > PENDING_AGE_FLUSH_MS;
    if (!isOld && rows <= PENDING_ROWS_EARLY_FLUSH) {
      return undefined;
    }
    const queued = await jobs.openJobs(repositoryName, 'dispatched', OPEN_ROWS_READ_MAX);
    if (queued.some((job) => job.kind === 'flush')) {
      return undefined;
    }
    const operationId = `flush-${now.getTime()}`;
    return await jobs.add({ repository: repositoryName, operationId, kind: 'flush', facts: { rows }, now });
  }

  /** Ends the runs that showed no sign of life for RUN_EXPIRES_MS. @returns how many */
  async expireRuns(repository: string): Promise<number> {
    const { clock, runs, jobs } = this.#parts;
    const expiredBefore = clock.now().getTime() - RUN_EXPIRES_MS;
    let expired = 0;
    for (const { runId } of await runs.openRuns(repository)) {
      const run = await runs.get(repository, runId);
      if (run === undefined || run.lastActiveAt.getTime() > expiredBefore) {
        continue;
      }
      const job = run.operationId === null ? undefined : await jobs.get(repository, run.operationId);
      const isAtWork = job !== undefined && (job.state === 'waiting' || job.state === 'running');
      if (!isAtWork && (await runs.update(run, { state: 'expired' })) !== undefined) {
        expired += 1;
      }
    }
    return expired;
  }
}
