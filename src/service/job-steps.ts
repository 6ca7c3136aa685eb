/**
 * The steps of every job: taking it, saying how far it is, ending it. Each may run twice, or late: a step of an attempt
 * that is no longer the job's current one changes nothing.
 */

import { AriusError, type Problem } from '../errors.ts';
import { JOB_ATTEMPTS_MAX, ROW_CHANGE_ATTEMPTS_MAX } from '../limits.ts';
import type { JobChanges, JobKind, JobOutcome, JobQueue, StoredJob } from '../records/job-queue.ts';
import type { Clock } from '../storage/ports.ts';
import { operationNotFound, stillChanging } from './refusals.ts';

/** Names one attempt at one job. */
export interface JobRef {
  readonly repository: string;
  readonly operationId: string;
  readonly attempt: number;
}

export interface TakenJob extends JobRef {
  readonly kind: JobKind;
}

/** Who takes a job: an orchestration instance, and when its present execution began. */
export interface Taker {
  readonly owner: string;
  readonly beganAtMs: number;
}

/** Occurs when a step of an earlier attempt wakes after the job was taken again, or has ended. */
class AttemptOverError extends Error {
  constructor(job: JobRef) {
    super(`Attempt ${job.attempt} at ${job.operationId} of ${job.repository} is over`);
    this.name = 'AttemptOverError';
  }
}

export class JobSteps {
  readonly #jobs: JobQueue;
  readonly #clock: Clock;

  constructor(jobs: JobQueue, clock: Clock) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** The oldest job that waits for the dispatcher of a repository, claimed; null when there is none. */
  async takeNext(repository: string, taker: Taker): Promise<TakenJob | null> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const [job] = await this.#jobs.openJobs(repository, 'dispatched', 1);
      if (job === undefined) {
        return null;
      }
      const taken = await this.#take(job, taker);
      if (taken !== 'changed' && taken !== 'ended') {
        return taken;
      }
    }
    throw stillChanging(`The queue of the repository "${repository}"`);
  }

  /** A given job, claimed; null when it has ended, or a later execution has it. */
  async take(repository: string, operationId: string, taker: Taker): Promise<TakenJob | null> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const job = await this.#jobs.get(repository, operationId);
      const taken = job === undefined ? 'ended' : await this.#take(job, taker);
      if (taken !== 'changed') {
        return taken === 'ended' ? null : taken;
      }
    }
    throw stillChanging(`The operation ${operationId}`);
  }

  async enterPhase(job: JobRef, phase: string, progress: StoredJob['progress']): Promise<void> {
    await this.change(job, () => ({ phase, progress }));
  }

  async find(job: JobRef): Promise<StoredJob | undefined> {
    return await this.#jobs.get(job.repository, job.operationId);
  }

  /** @throws AttemptOverError */
  async current(job: JobRef): Promise<StoredJob> {
    const row = await this.#jobs.get(job.repository, job.operationId);
    if (row === undefined) {
      throw operationNotFound(job.repository, job.operationId);
    }
    if (row.attempt !== job.attempt || row.state !== 'running') {
      throw new AttemptOverError(job);
    }
    return row;
  }

  /** Changes the row of the current attempt, deciding anew whenever somebody else changed it. */
  async change(job: JobRef, changes: (row: StoredJob) => JobChanges): Promise<StoredJob> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const row = await this.current(job);
      const changed = await this.#jobs.update(row, changes(row), this.#clock.now());
      if (changed !== undefined) {
        return changed;
      }
    }
    throw stillChanging(`The operation ${job.operationId}`);
  }

  /** Ends the job. Run twice, the second finds it ended, which is as well. */
  async finish(job: JobRef, outcome: JobOutcome): Promise<void> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const row = await this.#jobs.get(job.repository, job.operationId);
      if (row === undefined || row.attempt !== job.attempt || row.state !== 'running') {
        return;
      }
      if ((await this.#jobs.finish(row, outcome, this.#clock.now())) !== undefined) {
        await this.#jobs.forgetProgress(job.repository, job.operationId);
        return;
      }
    }
    throw stillChanging(`The operation ${job.operationId}`);
  }

  async markDone(job: JobRef, phase: string, item: string): Promise<void> {
    await this.#jobs.markDone(job.repository, job.operationId, phase, item);
  }

  async #take(job: StoredJob, taker: Taker): Promise<TakenJob | null | 'changed' | 'ended'> {
    const { repository, operationId, kind } = job;
    if (job.state === 'succeeded' || job.state === 'failed') {
      return 'ended';
    }
    if (job.state === 'running' && job.claimedAtMs > taker.beganAtMs) {
      // This is a late twin: a later execution of the same instance is at work.
      return null;
    }
    if (job.state === 'running' && job.claimedAtMs === taker.beganAtMs && job.claim?.startsWith(`${taker.owner}:`)) {
      // The same step, run twice.
      return { repository, operationId, kind, attempt: job.attempt };
    }
    const now = this.#clock.now();
    if (job.attempt - job.queuedAttempt >= JOB_ATTEMPTS_MAX) {
      const error = givenUp(job);
      return (await this.#jobs.finish(job, { state: 'failed', error }, now)) === undefined ? 'changed' : 'ended';
    }
    const claimed = await this.#jobs.claim(job, taker.owner, taker.beganAtMs, now);
    return claimed === undefined ? 'changed' : { repository, operationId, kind, attempt: claimed.attempt };
  }
}

function givenUp(job: StoredJob): Problem {
  return new AriusError(
    'internal',
    `The operation ${job.operationId} was interrupted ${JOB_ATTEMPTS_MAX} times in the phase "${job.phase}".`,
    'Nothing is lost. Look at the log of the service for the reason, then archive again.',
  ).toProblem();
}
