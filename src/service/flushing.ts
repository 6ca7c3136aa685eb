/**
 * The steps that bring pending entries into shards: plan, flush each root, bump the layout version, settle each root. Each
 * may run twice or late; what makes that safe lies in the chunk index, not here.
 */

import type { FlushCounters, FlushJob, SettleResult } from '../chunk-index/chunk-index.ts';
import type { Problem } from '../errors.ts';
import type { JobOutcome } from '../records/job-queue.ts';
import type { BlobContainer } from '../storage/ports.ts';
import type { JobRef, JobSteps } from './job-steps.ts';
import type { OpenRepositories } from './open-repository.ts';
import type { RepositoryStates } from './repository-states.ts';
import { clearStaging } from './staging.ts';

export type { FlushCounters, SettleResult };

export interface RootStep extends JobRef {
  readonly root: string;
  /** A root is flushed again in a new round when settling found it split under its rows; each round has its manifests. */
  readonly round: number;
}

/** Of a job that only flushes. */
export type FlushEnding =
  | { readonly succeeded: true; readonly result: Readonly<Record<string, number>> }
  | { readonly succeeded: false; readonly error: Problem };

export class Flushing {
  readonly #repositories: OpenRepositories;
  readonly #states: RepositoryStates;
  readonly #steps: JobSteps;
  readonly #staging: BlobContainer;

  constructor(parts: {
    repositories: OpenRepositories;
    states: RepositoryStates;
    steps: JobSteps;
    staging: BlobContainer;
  }) {
    this.#repositories = parts.repositories;
    this.#states = parts.states;
    this.#steps = parts.steps;
    this.#staging = parts.staging;
  }

  async roots(job: JobRef): Promise<readonly string[]> {
    await this.#steps.current(job);
    return await (await this.#repositories.get(job.repository)).index.rootsToFlush();
  }

  async flushRoot(step: RootStep): Promise<FlushCounters> {
    const { index } = await this.#repositories.get(step.repository);
    const counters = await index.flushRoot(step.root, flushJobOf(step));
    await this.#steps.markDone(step, 'flushing', step.root);
    return counters;
  }

  /** Between the last upload and the first removal of a row, so that no reader falls between shard and row. */
  async bumpLayoutVersion(job: JobRef): Promise<void> {
    await this.#steps.current(job);
    await this.#states.bumpLayoutVersion(job.repository);
  }

  async settleRoot(step: RootStep): Promise<SettleResult> {
    const { index } = await this.#repositories.get(step.repository);
    const result = await index.settleRoot(step.root, flushJobOf(step));
    await this.#steps.markDone(step, 'settling', step.root);
    return result;
  }

  async finish(job: JobRef, ending: FlushEnding): Promise<void> {
    const outcome: JobOutcome = ending.succeeded
      ? { state: 'succeeded', result: ending.result }
      : { state: 'failed', error: ending.error };
    await this.#steps.finish(job, outcome);
    if (ending.succeeded) {
      await clearStaging(this.#staging, stagingPrefixOf(job));
    }
  }
}

function flushJobOf({ operationId, attempt, round }: RootStep): FlushJob {
  return { jobId: `${operationId}/${attempt}/flush-${round}`, owner: `${operationId}:${attempt}:${round}` };
}

/** Where an attempt keeps its scratch in staging: the manifests of its flushes, and what else it leaves there. */
export function stagingPrefixOf({ repository, operationId, attempt }: JobRef): string {
  return `${repository}/${operationId}/${attempt}/`;
}
