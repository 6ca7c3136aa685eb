/**
 * Assembling a body above SINGLE_UPLOAD_BYTES_MAX: the agent staged its blocks, the service copies them within storage and
 * commits the chunk with one conditional request that carries metadata and tier, so there is never a body without its
 * sentinel. Block ids carry the operation and the staged body's ETag: two writers of one chunk never mix their blocks.
 */

import { createHash } from 'node:crypto';
import type { CommitChunkRequest, OperationInfo } from '../contract/schemas.ts';
import { AriusError, type Problem } from '../errors.ts';
import { type ContentHash, parseContentHash } from '../hashing/hashes.ts';
import { BLOCKS_PER_BLOB_MAX, GRANT_LIFETIME_MS, STAGED_BLOCK_BYTES } from '../limits.ts';
import type { JobQueue, StoredJob } from '../records/job-queue.ts';
import { chunkBlobName, contentTypeOf } from '../repository/blob-names.ts';
import { formatChunkMetadata } from '../repository/chunk-metadata.ts';
import type { AccessTier, BlobContainer, BlobProperties, Clock } from '../storage/ports.ts';
import { optionalText, text, wholeNumber } from './completion-facts.ts';
import { dtoOf } from './dto.ts';
import { EntryFinder, typeConflict } from './entry-finder.ts';
import { beingUploaded, stagingNameOf } from './grants.ts';
import type { JobRef, JobSteps } from './job-steps.ts';
import type { OpenRepositories, OpenRepository } from './open-repository.ts';
import { operationOf } from './operations.ts';
import { badRequest, stillChanging } from './refusals.ts';
import type { Runs } from './runs.ts';

export interface AssemblyParts {
  readonly repositories: OpenRepositories;
  readonly runs: Runs;
  readonly jobs: JobQueue;
  readonly steps: JobSteps;
  readonly staging: BlobContainer;
  readonly clock: Clock;
}

export interface AssemblyPlan {
  /** Blocks to copy; 0 when the chunk is there already. */
  readonly blocks: number;
}

export type AssemblyEnding = { readonly succeeded: true } | { readonly succeeded: false; readonly error: Problem };

interface AssemblyFacts {
  readonly contentHash: ContentHash;
  readonly stagingName: string;
  readonly originalSize: number;
  readonly chunkSize: number;
  readonly tier: AccessTier;
  /** Of the staged body when the copying was planned. */
  readonly stagedEtag: string;
}

/** Half of the content hash is as unique as all of it, and keeps the id of the operation at a length ids may have. */
const HASH_CHARACTERS_IN_ID = 32;

export class ChunkAssembly {
  readonly #parts: AssemblyParts;

  constructor(parts: AssemblyParts) {
    this.#parts = parts;
  }

  /** Queues the assembly; idempotent in run and content. */
  async request(repositoryName: string, hashText: string, request: CommitChunkRequest): Promise<OperationInfo> {
    await this.#parts.repositories.get(repositoryName);
    const contentHash = parseContentHash(hashText);
    const run = await this.#parts.runs.working(repositoryName, request.runId);
    if (request.stagingName !== stagingNameOf(repositoryName, request.runId, contentHash)) {
      throw badRequest('The staging name is not the one that was granted for this run and content.');
    }
    const blocks = Math.ceil(request.chunkSize / STAGED_BLOCK_BYTES);
    if (blocks < 1 || blocks > BLOCKS_PER_BLOB_MAX) {
      throw badRequest(`A body of ${request.chunkSize} bytes cannot be assembled from blocks.`);
    }
    const operationId = `commit-${request.runId}-${contentHash.slice(0, HASH_CHARACTERS_IN_ID)}`;
    const { stagingName, originalSize, chunkSize } = request;
    const facts = { contentHash, stagingName, originalSize, chunkSize, tier: run.tier };
    const now = this.#parts.clock.now();
    const added = { repository: repositoryName, operationId, kind: 'commit-chunk', facts, now } as const;
    const job = await this.#parts.jobs.add(added);
    requireSameFacts(job, facts);
    if (job.state !== 'failed') {
      return operationOf(job);
    }
    return operationOf((await this.#parts.jobs.restart(job, now)) ?? (await this.#parts.jobs.add(added)));
  }

  async plan(job: JobRef): Promise<AssemblyPlan> {
    const repository = await this.#parts.repositories.get(job.repository);
    const facts = assemblyFactsOf(await this.#parts.steps.current(job));
    if (await this.#isCommitted(repository, facts.contentHash)) {
      return { blocks: 0 };
    }
    const staged = await this.#stagedBody(facts);
    const blocks = Math.ceil(facts.chunkSize / STAGED_BLOCK_BYTES);
    await this.#parts.steps.change(job, () => ({
      phase: 'assembling',
      progress: { done: 0, total: blocks, unit: 'blocks' },
      notes: { stagedEtag: staged.etag },
    }));
    return { blocks };
  }

  /** Copies one range within storage. Repeated, it stages the same bytes under the same id. */
  async copyBlock(job: JobRef, index: number): Promise<void> {
    const { container } = await this.#parts.repositories.get(job.repository);
    const facts = assemblyFactsOf(await this.#parts.steps.current(job));
    const expiresAt = new Date(this.#parts.clock.now().getTime() + GRANT_LIFETIME_MS);
    const sourceUrl = await this.#parts.staging.signedUrl(facts.stagingName, 'read', expiresAt);
    const offsetBytes = index * STAGED_BLOCK_BYTES;
    const lengthBytes = Math.min(STAGED_BLOCK_BYTES, facts.chunkSize - offsetBytes);
    const blobName = chunkBlobName(facts.contentHash);
    await container.stageBlockFromUrl(blobName, blockId(job, facts, index), sourceUrl, { offsetBytes, lengthBytes });
    await this.#parts.steps.markDone(job, 'assembling', String(index));
  }

  async commit(job: JobRef, blocks: number): Promise<void> {
    const repository = await this.#parts.repositories.get(job.repository);
    const facts = assemblyFactsOf(await this.#parts.steps.current(job));
    if (await this.#isCommitted(repository, facts.contentHash)) {
      return;
    }
    // Every block was copied from the very body that was planned, or the chunk is not committed.
    if ((await this.#stagedBody(facts)).etag !== facts.stagedEtag) {
      throw stillChanging(facts.stagingName);
    }
    const { originalSize, chunkSize, tier } = facts;
    const ids = Array.from({ length: blocks }, (_, index) => blockId(job, facts, index));
    try {
      await repository.container.commitBlocks(chunkBlobName(facts.contentHash), ids, {
        condition: { absent: true },
        contentType: contentTypeOf('large', repository.codec.sealed),
        metadata: formatChunkMetadata({ type: 'large', originalSize, chunkSize }),
        tier,
      });
    } catch (error) {
      // Another writer's commit drops the blocks of all others; then the chunk is there, which is what was wanted.
      if (!(await this.#isCommitted(repository, facts.contentHash))) {
        throw error;
      }
    }
  }

  /** Records the entry, then drops the staged body, then ends the job: whoever sees it ended finds the entry. */
  async finish(job: JobRef, ending: AssemblyEnding): Promise<void> {
    if (!ending.succeeded) {
      await this.#parts.steps.finish(job, { state: 'failed', error: ending.error });
      return;
    }
    const row = await this.#parts.steps.find(job);
    if (row === undefined || row.attempt !== job.attempt || row.state !== 'running') {
      return;
    }
    const repository = await this.#parts.repositories.get(job.repository);
    const facts = assemblyFactsOf(row);
    const finding = await new EntryFinder(repository.chunks).find(facts.contentHash);
    if (finding.outcome === 'conflict') {
      throw typeConflict(finding);
    }
    if (finding.outcome !== 'committed') {
      throw stillChanging(chunkBlobName(facts.contentHash));
    }
    await repository.pending.record([finding.entry]);
    const staged = await this.#parts.staging.head(facts.stagingName);
    if (staged !== undefined) {
      await this.#parts.staging.delete(facts.stagingName, { etag: staged.etag });
    }
    await this.#parts.steps.finish(job, { state: 'succeeded', result: { entry: dtoOf(finding.entry) } });
  }

  /** @throws AriusError `not-finished` while a body without sentinel is in the way, `chunk-type-conflict` when a chunk is */
  async #isCommitted(repository: OpenRepository, contentHash: ContentHash): Promise<boolean> {
    const finding = await new EntryFinder(repository.chunks).findForUpload(contentHash);
    if (finding.outcome === 'debris') {
      throw beingUploaded(contentHash, finding.retryAt, this.#parts.clock.now());
    }
    if (finding.outcome === 'conflict') {
      throw typeConflict(finding);
    }
    return finding.outcome === 'committed';
  }

  async #stagedBody(facts: AssemblyFacts): Promise<BlobProperties> {
    const staged = await this.#parts.staging.head(facts.stagingName);
    if (staged === undefined) {
      throw new AriusError('not-found', 'The staged body is not there.', 'Stage the blocks again, then commit again.');
    }
    if (staged.contentLengthBytes !== facts.chunkSize) {
      throw badRequest(`The staged body has ${staged.contentLengthBytes} bytes instead of ${facts.chunkSize}.`);
    }
    return staged;
  }
}

function blockId(job: JobRef, facts: AssemblyFacts, index: number): string {
  const writer = createHash('sha256').update(`${job.repository}/${job.operationId}/${facts.stagedEtag}`).digest('hex');
  // All ids of a blob have to be of one length, those of other writers included.
  return Buffer.from(`${writer.slice(0, 32)}-${String(index).padStart(6, '0')}`).toString('base64');
}

function assemblyFactsOf(job: StoredJob): AssemblyFacts {
  return {
    contentHash: parseContentHash(text(job.facts, 'contentHash')),
    stagingName: text(job.facts, 'stagingName'),
    originalSize: wholeNumber(job.facts, 'originalSize'),
    chunkSize: wholeNumber(job.facts, 'chunkSize'),
    tier: text(job.facts, 'tier') as AccessTier,
    stagedEtag: optionalText(job.notes, 'stagedEtag') ?? '',
  };
}

function requireSameFacts(job: StoredJob, facts: Readonly<Record<string, string | number>>): void {
  if (Object.entries(facts).some(([key, value]) => job.facts[key] !== value)) {
    throw new AriusError(
      'run-conflict',
      `The chunk ${String(facts.contentHash)} was committed by this run before, with other sizes.`,
      'Archive again with a new run id.',
    );
  }
}
