/**
 * Recording what an agent uploaded. Invariant 2: a pending row is written only after its chunk was seen committed, and
 * everything in it comes from the stored chunk. All rows of a call are written after all its looks, so a call that fails
 * on the way recorded nothing and may be repeated whole. What stands in the way of one content is answered for that
 * content, so that it does not spoil the others.
 */

import pMap from 'p-map';
import type {
  EntriesRequest,
  EntriesResponse,
  EntryResult,
  MembersRequest,
  MembersResponse,
} from '../contract/schemas.ts';
import { type ContentHash, parseChunkHash, parseContentHash } from '../hashing/hashes.ts';
import { CHUNK_HEAD_WORKERS, THIN_STUB_WORKERS } from '../limits.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import { dtoOf } from './dto.ts';
import { conflictDetail, EntryFinder, type UploadFinding } from './entry-finder.ts';
import type { OpenRepositories, OpenRepository } from './open-repository.ts';
import type { Runs } from './runs.ts';
import { ThinStubs } from './thin-stubs.ts';

export class Recording {
  readonly #repositories: OpenRepositories;
  readonly #runs: Runs;

  constructor(repositories: OpenRepositories, runs: Runs) {
    this.#repositories = repositories;
    this.#runs = runs;
  }

  /** Large chunks whose upload ended, created or found present. */
  async entries(repositoryName: string, request: EntriesRequest): Promise<EntriesResponse> {
    const repository = await this.#repositories.get(repositoryName);
    await this.#runs.working(repositoryName, request.runId);
    const finder = new EntryFinder(repository.chunks);
    const hashes = [...new Set(request.contentHashes.map(parseContentHash))];
    const found = await pMap(hashes, async (hash) => ({ hash, finding: await finder.findForUpload(hash) }), {
      concurrency: CHUNK_HEAD_WORKERS,
    });
    return { results: await recordAll(repository, found) };
  }

  /** Members of an uploaded tar: a thin stub each, then their entries. */
  async members(repositoryName: string, tarHashText: string, request: MembersRequest): Promise<MembersResponse> {
    const repository = await this.#repositories.get(repositoryName);
    await this.#runs.working(repositoryName, request.runId);
    const tarHash = parseChunkHash(tarHashText);
    const finder = new EntryFinder(repository.chunks);
    const tar = await finder.lookAtTar(tarHash);
    if (tar.kind === 'absent') {
      return { tar: { outcome: 'absent' }, results: [] };
    }
    if (tar.kind === 'debris') {
      return { tar: { outcome: 'debris', retryAt: tar.retryAt.toISOString() }, results: [] };
    }
    if (tar.kind !== 'tar') {
      return { tar: { outcome: 'conflict', detail: conflictDetail(tarHash, tar.kind) }, results: [] };
    }
    const stubs = new ThinStubs(repository, finder, { tarHash, chunkSize: tar.chunkSize, tier: tar.tier });
    const found = await pMap(
      distinctMembers(request.members),
      async ({ hash, originalSize }) => ({ hash, finding: await stubs.write(hash, originalSize) }),
      { concurrency: THIN_STUB_WORKERS },
    );
    return { tar: { outcome: 'committed' }, results: await recordAll(repository, found) };
  }
}

interface Found {
  readonly hash: ContentHash;
  readonly finding: UploadFinding;
}

async function recordAll(repository: OpenRepository, found: readonly Found[]): Promise<EntryResult[]> {
  const entries = found.flatMap(({ finding }): ShardEntry[] =>
    finding.outcome === 'committed' ? [finding.entry] : [],
  );
  if (entries.length > 0) {
    await repository.pending.record(entries);
  }
  return found.map(resultOf);
}

function resultOf({ hash, finding }: Found): EntryResult {
  switch (finding.outcome) {
    case 'committed':
      return { contentHash: hash, outcome: 'recorded', entry: dtoOf(finding.entry) };
    case 'debris':
      return { contentHash: hash, outcome: 'debris', retryAt: finding.retryAt.toISOString() };
    case 'conflict':
      return { contentHash: hash, outcome: 'conflict', detail: finding.detail };
    case 'absent':
      return { contentHash: hash, outcome: 'absent' };
  }
}

function distinctMembers(members: MembersRequest['members']): { hash: ContentHash; originalSize: number }[] {
  const distinct = new Map(members.map((member) => [parseContentHash(member.contentHash), member.originalSize]));
  return [...distinct].map(([hash, originalSize]) => ({ hash, originalSize }));
}
