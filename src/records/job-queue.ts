/**
 * Jobs: long work of the service, one row each. The row is the truth; a queue message or a timer only makes somebody
 * look at it. Jobs of the lane `dispatched` change the repository and run one at a time under its dispatcher; those of
 * the lane `beside` touch a single chunk and run whenever they like.
 *
 * Claims have no lease time. A claim names the dispatcher's execution by the moment it began: a later execution of that
 * singleton proves that the earlier one is gone and takes the job over; an earlier one that wakes late never does.
 */

import type { Problem } from '../errors.ts';

export type JobKind = 'complete' | 'flush' | 'commit-chunk';
export type JobLane = 'dispatched' | 'beside';
export type JobState = 'waiting' | 'running' | 'succeeded' | 'failed';

export function laneOf(kind: JobKind): JobLane {
  return kind === 'commit-chunk' ? 'beside' : 'dispatched';
}

export interface JobProgress {
  readonly done: number;
  readonly total: number;
  readonly unit: string;
}

/** JSON: what the job is about (fixed at its creation), and what it fixed once on its way. */
export type JobFacts = Readonly<Record<string, string | number | boolean | null>>;

export interface JobRecord {
  readonly repository: string;
  readonly operationId: string;
  readonly kind: JobKind;
  readonly state: JobState;
  readonly phase: string;
  readonly progress: JobProgress | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** When it was last put into the queue; the oldest is taken first. */
  readonly queuedAt: Date;
  /** Counts the claims. Steps of an earlier attempt may no longer change the row. */
  readonly attempt: number;
  /** `attempt` when it was last put into the queue: bounds the attempts since then. */
  readonly queuedAttempt: number;
  /** Dispatcher instance and attempt; null while nobody works on the job. */
  readonly claim: string | null;
  /** When the claiming execution began, in ms since the Unix epoch. */
  readonly claimedAtMs: number;
  readonly facts: JobFacts;
  readonly notes: JobFacts;
  readonly result: Readonly<Record<string, unknown>> | null;
  readonly error: Problem | null;
}

export interface StoredJob extends JobRecord {
  readonly etag: string;
}

export interface NewJob {
  readonly repository: string;
  readonly operationId: string;
  readonly kind: JobKind;
  readonly facts: JobFacts;
  readonly now: Date;
}

export type JobChanges = Partial<Pick<JobRecord, 'state' | 'phase' | 'progress' | 'notes' | 'claim' | 'claimedAtMs'>>;

export type JobOutcome =
  | { readonly state: 'succeeded'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly state: 'failed'; readonly error: Problem };

export interface JobQueue {
  /** The job that is there now: the one just added, or the one that had this id already. */
  add(job: NewJob): Promise<StoredJob>;
  get(repository: string, operationId: string): Promise<StoredJob | undefined>;
  /** Jobs of a lane that have not ended, oldest first. */
  openJobs(repository: string, lane: JobLane, max: number): Promise<readonly StoredJob[]>;
  /** One more attempt, in the name of an execution of `owner` that began at `beganAtMs`. Undefined: the row changed. */
  claim(job: StoredJob, owner: string, beganAtMs: number, now: Date): Promise<StoredJob | undefined>;
  /** Undefined: the row changed meanwhile; read it again. */
  update(job: StoredJob, changes: JobChanges, now: Date): Promise<StoredJob | undefined>;
  finish(job: StoredJob, outcome: JobOutcome, now: Date): Promise<StoredJob | undefined>;
  /** A failed job waits again. Undefined: the row changed meanwhile. */
  restart(job: StoredJob, now: Date): Promise<StoredJob | undefined>;
  /** Progress in items (roots, blocks): each may be reported twice and counts once. */
  markDone(repository: string, operationId: string, phase: string, item: string): Promise<void>;
  countDone(repository: string, operationId: string, phase: string): Promise<number>;
  /** Drops the progress marks of an ended job. */
  forgetProgress(repository: string, operationId: string): Promise<void>;
}
