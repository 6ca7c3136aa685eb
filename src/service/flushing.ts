/**
 * The steps that bring pending entries into shards: plan, flush each root, bump the layout version, settle each root. Each
 * may run twice or late; what makes that safe lies in the chunk index, not here.
 */

import type { FlushCounters, FlushJob, SettleResult } from '../chunk-index/chunk-index.ts';
import type { JobRef, JobSteps } from './job-steps.ts';
import type { OpenRepositories } from './open-repository.ts';
import type { RepositoryStates } from './repository-states.ts';

export interface RootStep extends JobRef {
  readonly root: string;
  /** A root is flushed again in a new round when settling found it split under its rows; each round has its manifests. */
  readonly round: number;
}

export class Flushing {
  readonly #repositories: OpenRepositories;
  readonly #states: RepositoryStates;
  readonly #steps: JobSteps;

  constructor(repositories: OpenRepositories, states: RepositoryStates, steps: JobSteps) {
    this.#repositories = repositories;
    this.#states = states;
    this.#steps = steps;
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
}

function flushJobOf({ repository, operationId, attempt, round }: RootStep): FlushJob {
  const jobId = `${stagingPrefixOf({ repository, operationId, attempt })}flush-${round}`;
  return { jobId, owner: `${operationId}:${attempt}:${round}` };
}

/** Where an attempt keeps its scratch in staging. Repository and attempt are part of it: staging is shared. */
export function stagingPrefixOf({ repository, operationId, attempt }: JobRef): string {
  return `jobs/${repository}/${operationId}/${attempt}/`;
}
