/**
 * The steps that end a run with a snapshot: plan, verify, publish, promote, finish. Invariant 1: the snapshot is written
 * after everything it needs is durable and was found; the orchestration keeps the order, these steps keep each its part.
 * What has to stay the same when a step runs twice (the snapshot before, the name of the new one) is fixed in the job row.
 */

import type { CompleteRunResult } from '../contract/schemas.ts';
import { AriusError, type Problem } from '../errors.ts';
import { type FileTreeHash, parseFileTreeHash } from '../hashing/hashes.ts';
import { ROW_CHANGE_ATTEMPTS_MAX, VERIFY_NODES_PER_ACTIVITY, VERIFY_STACK_BYTES_MAX } from '../limits.ts';
import type { StoredJob } from '../records/job-queue.ts';
import type { RunChanges, RunStore, StoredRun } from '../records/run-store.ts';
import { contentTypeOf, snapshotBlobName } from '../repository/blob-names.ts';
import { parseSnapshotName, type SnapshotManifest, serializeSnapshot, snapshotNameOf } from '../repository/snapshot.ts';
import { millisecondsOfTicks, ticksOfMilliseconds } from '../repository/timestamps.ts';
import type { BlobContainer, Clock } from '../storage/ports.ts';
import {
  type CompletionFacts,
  type CompletionNotes,
  completionFactsOf,
  completionNotesOf,
} from './completion-facts.ts';
import { type Flushing, stagingPrefixOf } from './flushing.ts';
import type { JobRef, JobSteps } from './job-steps.ts';
import type { OpenRepositories, OpenRepository } from './open-repository.ts';
import { stillChanging } from './refusals.ts';
import type { RepositoryStates } from './repository-states.ts';
import { clearStaging } from './staging.ts';
import { FileTreeVerifier, type OpenNode, parseStack, serializeStack } from './verification.ts';

export interface CompletionParts {
  readonly repositories: OpenRepositories;
  readonly states: RepositoryStates;
  readonly runs: RunStore;
  readonly steps: JobSteps;
  readonly flushing: Flushing;
  readonly staging: BlobContainer;
  readonly clock: Clock;
  readonly version: string;
}

export interface CompletionPlan {
  /** Roots that have rows to flush, or an interrupted split to mend. */
  readonly roots: readonly string[];
  /** False when there is no file, or nothing changed since the snapshot before. */
  readonly publishes: boolean;
}

export interface VerifiedSlice {
  readonly done: boolean;
  readonly nodes: number;
}

export interface Published {
  /** The snapshot the run ends with; null when there is none. */
  readonly snapshot: string | null;
  readonly published: boolean;
}

export type CompletionEnding =
  | { readonly succeeded: true; readonly result: CompleteRunResult }
  | { readonly succeeded: false; readonly error: Problem };

export class Completion {
  readonly #parts: CompletionParts;

  constructor(parts: CompletionParts) {
    this.#parts = parts;
  }

  async plan(job: JobRef): Promise<CompletionPlan> {
    const repository = await this.#parts.repositories.get(job.repository);
    const row = await this.#parts.steps.current(job);
    const facts = completionFactsOf(row);
    const notes = await this.#fixBase(repository, job, row, facts);
    const roots = await this.#parts.flushing.roots(job);
    return { roots, publishes: publishes(facts, notes) };
  }

  /** One slice of the walk over the new nodes; `slice` counts from 0. */
  async verify(job: JobRef, slice: number): Promise<VerifiedSlice> {
    const repository = await this.#parts.repositories.get(job.repository);
    const row = await this.#parts.steps.current(job);
    const facts = completionFactsOf(row);
    const stack = slice === 0 ? firstStack(facts, completionNotesOf(row)) : await this.#readStack(job, slice);
    const verifier = new FileTreeVerifier(repository, stack);
    const rest = await verifier.walk(VERIFY_NODES_PER_ACTIVITY);
    if (rest.length > 0) {
      await this.#writeStack(job, slice + 1, rest);
    }
    const nodes = (row.progress?.done ?? 0) + verifier.nodes;
    await this.#parts.steps.enterPhase(job, 'verifying', { done: nodes, total: nodes, unit: 'filetrees' });
    return { done: rest.length === 0, nodes: verifier.nodes };
  }

  async publish(job: JobRef): Promise<Published> {
    const repository = await this.#parts.repositories.get(job.repository);
    const row = await this.#fixName(repository, job);
    const facts = completionFactsOf(row);
    const notes = completionNotesOf(row);
    if (notes.snapshot === null || facts.rootHash === null) {
      return { snapshot: notes.base, published: false };
    }
    const manifest = this.#manifestOf(facts, facts.rootHash, notes.snapshot);
    const body = await repository.codec.encode(serializeSnapshot(manifest));
    const written = await repository.container.write(snapshotBlobName(notes.snapshot), body, {
      condition: { absent: true },
      contentType: contentTypeOf('snapshot', repository.codec.sealed),
      tier: 'cool',
    });
    if (written.outcome === 'conflict' && !(await isPublished(repository, notes.snapshot, manifest))) {
      throw new AriusError(
        'busy',
        `Another client published a snapshot of the very moment ${notes.snapshot}.`,
        'Archive again; nothing is uploaded twice.',
      );
    }
    return { snapshot: notes.snapshot, published: true };
  }

  /** Moves the epoch, and takes along what this instance knows of the index: nothing else changed it in between. */
  async promote(job: JobRef): Promise<void> {
    const { index } = await this.#parts.repositories.get(job.repository);
    const notes = completionNotesOf(await this.#parts.steps.current(job));
    if (notes.snapshot === null) {
      return;
    }
    const { layoutVersion } = await this.#parts.states.moveEpochForward(job.repository, notes.snapshot);
    index.promote({ epoch: notes.epochBefore, layoutVersion }, { epoch: notes.snapshot, layoutVersion });
  }

  /** The run first: whoever sees the operation ended finds the run ended too. */
  async finish(job: JobRef, ending: CompletionEnding): Promise<void> {
    const row = await this.#parts.steps.find(job);
    if (row === undefined || row.attempt !== job.attempt) {
      return;
    }
    const { runId, source } = completionFactsOf(row);
    const run = await this.#endRun(job.repository, runId, ending);
    if (!ending.succeeded) {
      await this.#parts.steps.finish(job, { state: 'failed', error: ending.error });
      return;
    }
    await this.#parts.steps.finish(job, { state: 'succeeded', result: ending.result });
    if (run !== undefined) {
      await this.#parts.runs.markRecovered(job.repository, source, run.startedAt);
    }
    await clearStaging(this.#parts.staging, stagingPrefixOf(job));
  }

  async #endRun(repository: string, runId: string, ending: CompletionEnding): Promise<StoredRun | undefined> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const run = await this.#parts.runs.get(repository, runId);
      if (run === undefined || run.state !== 'completing') {
        return run;
      }
      const changes: RunChanges = ending.succeeded
        ? { state: 'completed', snapshot: ending.result.snapshot }
        : { state: 'failed' };
      const ended = await this.#parts.runs.update(run, changes);
      if (ended !== undefined) {
        return ended;
      }
    }
    throw stillChanging(`The run ${runId}`);
  }

  /**
   * The snapshot before, fixed once per attempt. A name that an earlier attempt fixed stays only if its snapshot is there:
   * then that attempt published, and died before it could say so.
   */
  async #fixBase(
    repository: OpenRepository,
    job: JobRef,
    row: StoredJob,
    facts: CompletionFacts,
  ): Promise<CompletionNotes> {
    const earlier = completionNotesOf(row);
    if (earlier.attempt === job.attempt) {
      return earlier;
    }
    if (earlier.snapshot !== null && facts.rootHash !== null) {
      const manifest = this.#manifestOf(facts, facts.rootHash, earlier.snapshot);
      if (await isPublished(repository, earlier.snapshot, manifest)) {
        return await this.#note(job, { ...earlier, attempt: job.attempt });
      }
    }
    const base = await repository.snapshots.newestOf(facts.source);
    return await this.#note(job, {
      attempt: job.attempt,
      base: base?.name ?? null,
      baseRoot: base?.manifest.rootHash ?? null,
      epochBefore: null,
      snapshot: null,
    });
  }

  /** The name is fixed once, before the first try to write it, so that a try whose outcome is unknown is recognised. */
  async #fixName(repository: OpenRepository, job: JobRef): Promise<StoredJob> {
    const row = await this.#parts.steps.current(job);
    const notes = completionNotesOf(row);
    if (notes.snapshot !== null || !publishes(completionFactsOf(row), notes)) {
      return row;
    }
    const epochBefore = (await repository.snapshots.newestName()) ?? null;
    const newestTicks = epochBefore === null ? undefined : parseSnapshotName(epochBefore);
    const afterNewestMs = newestTicks === undefined ? 0 : millisecondsOfTicks(newestTicks) + 1;
    const nameMs = Math.max(this.#parts.clock.now().getTime(), afterNewestMs);
    const snapshot = snapshotNameOf(ticksOfMilliseconds(nameMs));
    return await this.#parts.steps.change(job, (latest) => {
      const fixed = completionNotesOf(latest);
      return { notes: { ...(fixed.snapshot === null ? { ...fixed, epochBefore, snapshot } : fixed) } };
    });
  }

  async #note(job: JobRef, notes: CompletionNotes): Promise<CompletionNotes> {
    await this.#parts.steps.change(job, () => ({ notes: { ...notes }, phase: 'planning', progress: null }));
    return notes;
  }

  #manifestOf(facts: CompletionFacts, rootHash: FileTreeHash, name: string): SnapshotManifest {
    const timestampTicks = parseSnapshotName(name);
    if (timestampTicks === undefined) {
      throw new Error(`The job of the run ${facts.runId} holds a snapshot name that is none: ${name}`);
    }
    const { fileCount, originalSize, source, runId } = facts;
    return { timestampTicks, rootHash, fileCount, originalSize, ariusVersion: this.#parts.version, source, runId };
  }

  async #readStack(job: JobRef, slice: number): Promise<readonly OpenNode[]> {
    const blob = await this.#parts.staging.read(stackName(job, slice), VERIFY_STACK_BYTES_MAX);
    if (blob === undefined) {
      throw new AriusError('storage-failed', `The staged state ${stackName(job, slice)} is gone.`, 'Archive again.');
    }
    return parseStack(blob.bytes);
  }

  /** A conflict means that this slice ran before and left the same. */
  async #writeStack(job: JobRef, slice: number, stack: readonly OpenNode[]): Promise<void> {
    await this.#parts.staging.write(stackName(job, slice), serializeStack(stack), {
      condition: { absent: true },
      contentType: 'application/json',
    });
  }
}

function publishes(facts: CompletionFacts, notes: CompletionNotes): boolean {
  return facts.rootHash !== null && (notes.snapshot !== null || facts.rootHash !== notes.baseRoot);
}

function firstStack(facts: CompletionFacts, notes: CompletionNotes): readonly OpenNode[] {
  if (facts.rootHash === null) {
    return [];
  }
  const base = notes.baseRoot === null ? null : parseFileTreeHash(notes.baseRoot);
  return [{ path: '', hash: facts.rootHash, base, after: null }];
}

function stackName(job: JobRef, slice: number): string {
  return `${stagingPrefixOf(job)}verify-${slice}`;
}

async function isPublished(repository: OpenRepository, name: string, manifest: SnapshotManifest): Promise<boolean> {
  const found = await repository.snapshots.find(name);
  if (found === undefined) {
    return false;
  }
  // The version is left out: an attempt before an update of the service wrote its own.
  const wanted = serializeSnapshot({ ...manifest, ariusVersion: found.manifest.ariusVersion });
  return Buffer.from(serializeSnapshot(found.manifest)).equals(Buffer.from(wanted));
}
