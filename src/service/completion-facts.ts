/** What the job of a completing run is about, and what it fixed on its way, as they stand in its row. */

import { type FileTreeHash, parseFileTreeHash } from '../hashing/hashes.ts';
import type { JobFacts, StoredJob } from '../records/job-queue.ts';
import type { RunCompletion } from '../records/run-store.ts';

export interface CompletionFacts extends RunCompletion {
  readonly runId: string;
  readonly source: string;
  readonly rootHash: FileTreeHash | null;
}

export interface CompletionNotes {
  /** The attempt that fixed the snapshot before; 0 while none has. */
  readonly attempt: number;
  /** Name and root of the newest snapshot of the source before this one. */
  readonly base: string | null;
  readonly baseRoot: string | null;
  /** The newest snapshot of any source when the name was fixed. */
  readonly epochBefore: string | null;
  /** The name of the new snapshot, once it is fixed. */
  readonly snapshot: string | null;
}

export function completionFactsOf(job: StoredJob): CompletionFacts {
  const rootHash = optionalText(job.facts, 'rootHash');
  return {
    runId: text(job.facts, 'runId'),
    source: text(job.facts, 'source'),
    rootHash: rootHash === null ? null : parseFileTreeHash(rootHash),
    fileCount: wholeNumber(job.facts, 'fileCount'),
    originalSize: wholeNumber(job.facts, 'originalSize'),
  };
}

export function completionNotesOf(job: StoredJob): CompletionNotes {
  return {
    attempt: typeof job.notes.attempt === 'number' ? job.notes.attempt : 0,
    base: optionalText(job.notes, 'base'),
    baseRoot: optionalText(job.notes, 'baseRoot'),
    epochBefore: optionalText(job.notes, 'epochBefore'),
    snapshot: optionalText(job.notes, 'snapshot'),
  };
}

export function text(facts: JobFacts, key: string): string {
  const value = facts[key];
  if (typeof value !== 'string') {
    throw new TypeError(`The job has no text "${key}"`);
  }
  return value;
}

export function wholeNumber(facts: JobFacts, key: string): number {
  const value = facts[key];
  if (!Number.isSafeInteger(value)) {
    throw new TypeError(`The job has no number "${key}"`);
  }
  return value as number;
}

export function optionalText(facts: JobFacts, key: string): string | null {
  const value = facts[key];
  return typeof value === 'string' ? value : null;
}
