/**
 * Runs: one row per archive run an agent started. A run that has not ended is also found by listing the open runs of
 * its repository. Invariant: a run row changes only by its ETag, so two requests about one run never both win.
 */

import type { AccessTier } from '../storage/ports.ts';

export type RunState = 'started' | 'completing' | 'completed' | 'failed' | 'expired';

/** What an agent says when it completes a run. Null root: the folder held no file. */
export interface RunCompletion {
  readonly rootHash: string | null;
  readonly fileCount: number;
  readonly originalSize: number;
}

export interface RunRecord {
  readonly repository: string;
  readonly runId: string;
  readonly source: string;
  readonly tier: AccessTier;
  readonly state: RunState;
  readonly startedAt: Date;
  /** Kept within an hour: a slow upload of weeks is not an abandoned run. */
  readonly lastActiveAt: Date;
  /** True when the same run was started again: chunks of its first try may be committed but not recorded. */
  readonly restarted: boolean;
  /** Name of the newest snapshot of this source when the run started. */
  readonly newestSnapshot: string | null;
  readonly completion: RunCompletion | null;
  readonly operationId: string | null;
  /** Name of the snapshot the run ended with. */
  readonly snapshot: string | null;
}

export interface StoredRun extends RunRecord {
  readonly etag: string;
}

/** A run that has not ended, as the list of open runs shows it. */
export interface OpenRun {
  readonly runId: string;
  readonly source: string;
  readonly startedAt: Date;
  /** A later run of the same source went over the same files: nothing of this one is left to be found. */
  readonly recovered: boolean;
}

export type RunChanges = Partial<Omit<RunRecord, 'repository' | 'runId' | 'source' | 'startedAt'>>;

export interface RunStore {
  insert(run: RunRecord): Promise<'inserted' | 'exists'>;
  get(repository: string, runId: string): Promise<StoredRun | undefined>;
  /** Undefined: the row changed meanwhile; read it again. */
  update(run: StoredRun, changes: RunChanges): Promise<StoredRun | undefined>;
  /** Runs of the repository that have not ended, at most OPEN_ROWS_READ_MAX. */
  openRuns(repository: string): Promise<readonly OpenRun[]>;
  /** Marks the open runs of a source that started before a given moment. */
  markRecovered(repository: string, source: string, startedBefore: Date): Promise<void>;
}

export function isEnded(state: RunState): boolean {
  return state === 'completed' || state === 'failed' || state === 'expired';
}
