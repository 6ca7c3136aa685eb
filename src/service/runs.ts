/**
 * Archive runs: start, look, complete. Start and complete are idempotent in the client's run id: repeated with the same
 * facts they change nothing and answer the same; with other facts they are refused. Completing only puts a job into the
 * queue; the work is done by its orchestration.
 */

import type { CompleteRunRequest, OperationInfo, RunInfo, StartRunRequest } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';
import { ROW_CHANGE_ATTEMPTS_MAX, RUN_TOUCH_INTERVAL_MS } from '../limits.ts';
import type { JobQueue, StoredJob } from '../records/job-queue.ts';
import type { RunCompletion, RunStore, StoredRun } from '../records/run-store.ts';
import type { Clock } from '../storage/ports.ts';
import type { OpenRepositories, OpenRepository } from './open-repository.ts';
import { operationOf } from './operations.ts';
import { runNotFound, stillChanging } from './refusals.ts';
import type { RepositoryStates, UploadTier } from './repository-states.ts';
import { snapshotInfoOf } from './snapshot-info.ts';

export interface RunParts {
  readonly clock: Clock;
  readonly repositories: OpenRepositories;
  readonly states: RepositoryStates;
  readonly runs: RunStore;
  readonly jobs: JobQueue;
}

function completionOperationId(runId: string): string {
  return `complete-${runId}`;
}

export class Runs {
  readonly #parts: RunParts;

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  async start(repositoryName: string, request: StartRunRequest): Promise<RunInfo> {
    const repository = await this.#parts.repositories.get(repositoryName);
    const known = await this.#parts.runs.get(repositoryName, request.runId);
    if (known !== undefined) {
      return await this.#startAgain(repository, known, request);
    }
    // Once per run the epoch is compared with what is there: a snapshot that another client wrote is noticed here.
    const newestName = await repository.snapshots.newestName();
    if (newestName !== undefined) {
      await this.#parts.states.moveEpochForward(repositoryName, newestName);
    }
    const newest = await repository.snapshots.newestOf(request.source);
    const now = this.#parts.clock.now();
    const inserted = await this.#parts.runs.insert({
      repository: repositoryName,
      runId: request.runId,
      source: request.source,
      tier: request.tier ?? repository.tier,
      state: 'started',
      startedAt: now,
      lastActiveAt: now,
      restarted: false,
      newestSnapshot: newest?.name ?? null,
      completion: null,
      operationId: null,
      snapshot: null,
    });
    const run = await this.#require(repositoryName, request.runId);
    return inserted === 'inserted'
      ? await this.#infoOf(repository, run)
      : await this.#startAgain(repository, run, request);
  }

  async get(repositoryName: string, runId: string): Promise<RunInfo> {
    const repository = await this.#parts.repositories.get(repositoryName);
    return await this.#infoOf(repository, await this.#require(repositoryName, runId));
  }

  /**
   * The run behind a request of an agent, and a sign of life of that run at most once an hour.
   * @throws AriusError `run-not-found`
   */
  async working(repositoryName: string, runId: string): Promise<StoredRun> {
    const run = await this.#require(repositoryName, runId);
    const now = this.#parts.clock.now();
    if (run.state === 'started' && now.getTime() - run.lastActiveAt.getTime() > RUN_TOUCH_INTERVAL_MS) {
      // A conflict means that another request of the run has just done it.
      return (await this.#parts.runs.update(run, { lastActiveAt: now })) ?? run;
    }
    return run;
  }

  /** @throws AriusError `run-conflict` when the run was completed with other facts, or has expired */
  async complete(repositoryName: string, runId: string, request: CompleteRunRequest): Promise<OperationInfo> {
    await this.#parts.repositories.get(repositoryName);
    const operationId = completionOperationId(runId);
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const run = await this.#require(repositoryName, runId);
      requireSameCompletion(run, request);
      if (run.state === 'completed') {
        return operationOf(await this.#queue(run, operationId, request));
      }
      // The row first: from here on nothing but these facts can complete the run. A crash before the job is queued is
      // mended by the agent, which asks again until it is answered.
      const completing =
        run.state === 'completing'
          ? run
          : await this.#parts.runs.update(run, { state: 'completing', completion: request, operationId });
      if (completing !== undefined) {
        return operationOf(await this.#queue(completing, operationId, request));
      }
    }
    throw stillChanging(`The run ${runId}`);
  }

  async #queue(run: StoredRun, operationId: string, completion: RunCompletion): Promise<StoredJob> {
    const now = this.#parts.clock.now();
    const facts = { runId: run.runId, source: run.source, ...completion };
    const job = await this.#parts.jobs.add({ repository: run.repository, operationId, kind: 'complete', facts, now });
    if (job.state !== 'failed') {
      return job;
    }
    return (await this.#parts.jobs.restart(job, now)) ?? (await this.#parts.jobs.add({ ...job, now }));
  }

  async #startAgain(repository: OpenRepository, run: StoredRun, request: StartRunRequest): Promise<RunInfo> {
    if (run.source !== request.source || (request.tier !== undefined && request.tier !== run.tier)) {
      throw new AriusError(
        'run-conflict',
        `The run ${run.runId} was started with another source or tier.`,
        'Start a run of its own with a new run id.',
      );
    }
    if (run.state !== 'started' || run.restarted) {
      return await this.#infoOf(repository, run);
    }
    const changes = { restarted: true, lastActiveAt: this.#parts.clock.now() };
    const restarted = await this.#parts.runs.update(run, changes);
    return await this.#infoOf(repository, restarted ?? (await this.#require(run.repository, run.runId)));
  }

  async #require(repositoryName: string, runId: string): Promise<StoredRun> {
    const run = await this.#parts.runs.get(repositoryName, runId);
    if (run === undefined) {
      throw runNotFound(repositoryName, runId);
    }
    return run;
  }

  async #infoOf(repository: OpenRepository, run: StoredRun): Promise<RunInfo> {
    const newest = run.newestSnapshot === null ? undefined : await repository.snapshots.find(run.newestSnapshot);
    return {
      runId: run.runId,
      repository: run.repository,
      source: run.source,
      state: run.state,
      tier: run.tier as UploadTier,
      startedAt: run.startedAt.toISOString(),
      newestSnapshot: newest === undefined ? null : snapshotInfoOf(newest),
      operationId: run.operationId,
      snapshot: run.snapshot,
    };
  }
}

function requireSameCompletion(run: StoredRun, request: RunCompletion): void {
  if (run.state === 'expired') {
    throw new AriusError(
      'run-conflict',
      `The run ${run.runId} has expired.`,
      'Archive again: a new run finds all of it.',
    );
  }
  const done = run.completion;
  const same =
    done === null ||
    (done.rootHash === request.rootHash &&
      done.fileCount === request.fileCount &&
      done.originalSize === request.originalSize);
  if (!same) {
    throw new AriusError(
      'run-conflict',
      `The run ${run.runId} was completed before, with another result.`,
      'Archive again with a new run id.',
    );
  }
}
