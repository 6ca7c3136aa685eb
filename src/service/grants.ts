/**
 * Signatures for an agent. Invariant: a grant names one blob under `chunks/` or `filetrees/` (create-only, or read), or one
 * staging name that belongs to this repository, run and content; nothing else is ever signed, and nothing for longer than
 * GRANT_LIFETIME_MS. Signing sends no request to storage.
 */

import type { GrantRequest, GrantResponse, StagingGrantRequest, StagingGrantResponse } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';
import { type ContentHash, parseContentHash } from '../hashing/hashes.ts';
import { GRANT_LIFETIME_MS } from '../limits.ts';
import { CHUNKS_PREFIX, chunkBlobName, FILETREES_PREFIX } from '../repository/blob-names.ts';
import type { BlobContainer, Clock } from '../storage/ports.ts';
import { dtoOf } from './dto.ts';
import { EntryFinder, typeConflict } from './entry-finder.ts';
import type { OpenRepositories } from './open-repository.ts';
import type { Runs } from './runs.ts';

const GRANTED_NAME = new RegExp(`^(?:${CHUNKS_PREFIX}|${FILETREES_PREFIX})[0-9a-f]{64}$`);

/** Where the blocks of one body wait for their assembly. The repository is part of the name: staging is shared. */
export function stagingNameOf(repository: string, runId: string, contentHash: ContentHash): string {
  return `${repository}/uploads/${runId}/${contentHash}`;
}

export class Grants {
  readonly #repositories: OpenRepositories;
  readonly #runs: Runs;
  readonly #staging: BlobContainer;
  readonly #clock: Clock;

  constructor(parts: { repositories: OpenRepositories; runs: Runs; staging: BlobContainer; clock: Clock }) {
    this.#repositories = parts.repositories;
    this.#runs = parts.runs;
    this.#staging = parts.staging;
    this.#clock = parts.clock;
  }

  async grant(repositoryName: string, request: GrantRequest): Promise<GrantResponse> {
    const { container } = await this.#repositories.get(repositoryName);
    const expiresAt = this.#expiry();
    const grants = await Promise.all(
      request.names.map(async (name) => {
        requireGrantable(name);
        const url = await container.signedUrl(name, request.purpose, expiresAt);
        return { name, url, expiresAt: expiresAt.toISOString() };
      }),
    );
    return { grants };
  }

  /** For a body too large to be created at once. Here alone one look is worth it: a HEAD against gigabytes. */
  async grantStaging(repositoryName: string, request: StagingGrantRequest): Promise<StagingGrantResponse> {
    const repository = await this.#repositories.get(repositoryName);
    await this.#runs.working(repositoryName, request.runId);
    const contentHash = parseContentHash(request.contentHash);
    const finding = await new EntryFinder(repository.chunks).findForUpload(contentHash);
    switch (finding.outcome) {
      case 'committed':
        await repository.pending.record([finding.entry]);
        return { outcome: 'exists', entry: dtoOf(finding.entry) };
      case 'debris':
        throw beingUploaded(contentHash, finding.retryAt, this.#clock.now());
      case 'conflict':
        throw typeConflict(finding);
      case 'absent': {
        const stagingName = stagingNameOf(repositoryName, request.runId, contentHash);
        const expiresAt = this.#expiry();
        const url = await this.#staging.signedUrl(stagingName, 'write', expiresAt);
        return { outcome: 'granted', stagingName, url, expiresAt: expiresAt.toISOString() };
      }
    }
  }

  #expiry(): Date {
    return new Date(this.#clock.now().getTime() + GRANT_LIFETIME_MS);
  }
}

/** The schema of the request says the same; this holds for whoever calls without one. */
function requireGrantable(name: string): void {
  if (!GRANTED_NAME.test(name)) {
    throw new AriusError(
      'not-allowed',
      `Nothing is ever granted for the name ${JSON.stringify(name.slice(0, 120))}.`,
      'Ask for chunks/{hash} or filetrees/{hash}.',
    );
  }
}

/** A body without sentinel stands where a large chunk is to go, and may be another writer's upload. */
export function beingUploaded(contentHash: ContentHash, retryAt: Date, now: Date): AriusError {
  return new AriusError(
    'not-finished',
    `${chunkBlobName(contentHash)} is being uploaded by another writer, or was left behind by one.`,
    `Run again after ${retryAt.toISOString()}.`,
    { retryAfterSeconds: Math.max(1, Math.ceil((retryAt.getTime() - now.getTime()) / 1000)) },
  );
}
