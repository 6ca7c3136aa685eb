/** All use cases of the service over one storage. It has no state of its own but caches, so any number may run at once. */

import { MAX_SHARD_ENTRY_COUNT } from '../limits.ts';
import { TableJobQueue } from '../records/table-job-queue.ts';
import { TableRunStore } from '../records/table-run-store.ts';
import type { Clock, Queue, Storage } from '../storage/ports.ts';
import { VERSION } from '../version.ts';
import { ChunkAssembly } from './assembly.ts';
import { Completion } from './completion.ts';
import { Flushing } from './flushing.ts';
import { Grants } from './grants.ts';
import { Housekeeping } from './housekeeping.ts';
import { JobSteps } from './job-steps.ts';
import { Lookup } from './lookup.ts';
import { OpenRepositories, PENDING_TABLE, STAGING_CONTAINER } from './open-repository.ts';
import { Operations } from './operations.ts';
import type { PassphraseSource } from './passphrases.ts';
import { Recording } from './recording.ts';
import { Repositories } from './repositories.ts';
import { RepositoryStates } from './repository-states.ts';
import { Runs } from './runs.ts';
import { Snapshots } from './snapshots.ts';

export interface ServiceParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly passphrases: PassphraseSource;
  /** In the storage that triggers listen to. */
  readonly jobsQueue: Queue;
  /** Other than the format's 1024 in tests only. */
  readonly maxShardEntryCount?: number;
}

export const JOBS_QUEUE = 'arius-jobs';
const STATES_TABLE = 'repositories';
const RUNS_TABLE = 'runs';
const JOBS_TABLE = 'jobs';

export class Service {
  readonly clock: Clock;
  readonly repositories: Repositories;
  readonly openRepositories: OpenRepositories;
  readonly runs: Runs;
  readonly lookup: Lookup;
  readonly grants: Grants;
  readonly recording: Recording;
  readonly assembly: ChunkAssembly;
  readonly snapshots: Snapshots;
  readonly operations: Operations;
  readonly steps: JobSteps;
  readonly flushing: Flushing;
  readonly completion: Completion;
  readonly housekeeping: Housekeeping;
  readonly #storage: Storage;
  readonly #jobsQueue: Queue;
  #ready: Promise<void> | undefined;

  constructor(parts: ServiceParts) {
    const { storage, clock, passphrases, maxShardEntryCount = MAX_SHARD_ENTRY_COUNT } = parts;
    const states = new RepositoryStates(storage.table(STATES_TABLE));
    const runs = new TableRunStore(storage.table(RUNS_TABLE));
    const jobs = new TableJobQueue(storage.table(JOBS_TABLE));
    const staging = storage.container(STAGING_CONTAINER);
    const repositories = new OpenRepositories({ storage, clock, states, passphrases, maxShardEntryCount });
    this.#storage = storage;
    this.#jobsQueue = parts.jobsQueue;
    this.clock = clock;
    this.openRepositories = repositories;
    this.repositories = new Repositories({ storage, clock, states, passphrases });
    this.runs = new Runs({ clock, repositories, states, runs, jobs });
    this.lookup = new Lookup(repositories, runs);
    this.grants = new Grants({ repositories, runs: this.runs, staging, clock });
    this.recording = new Recording(repositories, this.runs);
    this.snapshots = new Snapshots(repositories);
    this.operations = new Operations(jobs);
    this.steps = new JobSteps(jobs, clock);
    const steps = this.steps;
    this.assembly = new ChunkAssembly({ repositories, runs: this.runs, jobs, steps, staging, clock });
    this.flushing = new Flushing({ repositories, states, steps, staging });
    this.completion = new Completion({
      repositories,
      states,
      runs,
      steps,
      flushing: this.flushing,
      staging,
      clock,
      version: VERSION,
    });
    this.housekeeping = new Housekeeping({ repositories, states, runs, jobs, clock });
  }

  /** Makes the tables and the scratch container, once per instance; a failure is tried again by the next request. */
  async ready(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    await this.#ready;
  }

  /** Says that a repository has a new job. The row is the truth: a message that cannot be sent costs a minute. */
  async announceJob(repository: string): Promise<void> {
    await this.#jobsQueue.send(JSON.stringify({ repository }));
  }

  async #prepare(): Promise<void> {
    const tables = [STATES_TABLE, RUNS_TABLE, JOBS_TABLE, PENDING_TABLE];
    await Promise.all([
      ...tables.map(async (name) => await this.#storage.table(name).createIfMissing()),
      this.#storage.container(STAGING_CONTAINER).createIfMissing(),
      this.#jobsQueue.createIfMissing(),
    ]);
  }
}
