/** Long-running operations as an agent sees them: our own states, never the engine's. */

import type { OperationInfo } from '../contract/schemas.ts';
import type { JobProgress, JobQueue, StoredJob } from '../records/job-queue.ts';
import { operationNotFound } from './refusals.ts';

export class Operations {
  readonly #jobs: JobQueue;

  constructor(jobs: JobQueue) {
    this.#jobs = jobs;
  }

  /** @throws AriusError `operation-not-found` */
  async get(repository: string, operationId: string): Promise<OperationInfo> {
    const job = await this.#jobs.get(repository, operationId);
    if (job === undefined) {
      throw operationNotFound(repository, operationId);
    }
    return operationOf(job, await this.#progressOf(job));
  }

  /** Phases that go root by root, or block by block, have a mark for each that is done. */
  async #progressOf(job: StoredJob): Promise<JobProgress | null> {
    if (job.progress === null || job.state !== 'running') {
      return job.progress;
    }
    const marked = await this.#jobs.countDone(job.repository, job.operationId, job.phase);
    const done = Math.max(job.progress.done, marked);
    return { ...job.progress, done: Math.min(done, job.progress.total) };
  }
}

export function operationOf(job: StoredJob, progress: JobProgress | null = job.progress): OperationInfo {
  return {
    operationId: job.operationId,
    repository: job.repository,
    kind: job.kind,
    state: job.state,
    phase: job.phase,
    progress,
    createdAt: job.createdAt.toISOString(),
    updatedAt: job.updatedAt.toISOString(),
    result: job.result === null ? null : { ...job.result },
    error: job.error,
  };
}
