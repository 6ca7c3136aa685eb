/**
 * Which contents are stored. The index answers; only when an interrupted run may have left committed chunks that nobody
 * recorded are the misses looked for among the chunks themselves: such a chunk is recorded and not uploaded again.
 */

import pMap from 'p-map';
import type { LookupRequest, LookupResponse } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';
import { type ContentHash, parseContentHash } from '../hashing/hashes.ts';
import { CHUNK_HEAD_WORKERS } from '../limits.ts';
import type { RunStore } from '../records/run-store.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import { dtoOf } from './dto.ts';
import { EntryFinder } from './entry-finder.ts';
import type { OpenRepositories, OpenRepository } from './open-repository.ts';

export class Lookup {
  readonly #repositories: OpenRepositories;
  readonly #runs: RunStore;

  constructor(repositories: OpenRepositories, runs: RunStore) {
    this.#repositories = repositories;
    this.#runs = runs;
  }

  async lookup(repositoryName: string, request: LookupRequest): Promise<LookupResponse> {
    const repository = await this.#repositories.get(repositoryName);
    const asked = [...new Set(request.hashes.map(parseContentHash))];
    const known = new Map<ContentHash, ShardEntry>(await repository.index.lookup(asked));
    const misses = asked.filter((hash) => !known.has(hash));
    if (misses.length > 0 && request.purpose !== 'restore' && (await this.#mayBeUnrecorded(repositoryName, request))) {
      for (const entry of await recordFound(repository, misses)) {
        known.set(entry.contentHash, entry);
      }
    }
    return {
      known: asked.flatMap((hash) => entryFor(known, hash)).map(dtoOf),
      missing: asked.filter((hash) => !known.has(hash)),
    };
  }

  /** True while another run has not ended, or the asking one was started more than once. */
  async #mayBeUnrecorded(repositoryName: string, request: LookupRequest): Promise<boolean> {
    const open = await this.#runs.openRuns(repositoryName);
    if (open.some((run) => run.runId !== request.runId && !run.recovered)) {
      return true;
    }
    const run = request.runId === undefined ? undefined : await this.#runs.get(repositoryName, request.runId);
    return run?.restarted ?? false;
  }
}

async function recordFound(repository: OpenRepository, hashes: readonly ContentHash[]): Promise<readonly ShardEntry[]> {
  const finder = new EntryFinder(repository.chunks);
  const found = await pMap(hashes, async (hash) => await findCommitted(finder, hash), {
    concurrency: CHUNK_HEAD_WORKERS,
  });
  const entries = found.filter((entry) => entry !== undefined);
  if (entries.length > 0) {
    await repository.pending.record(entries);
  }
  return entries;
}

async function findCommitted(finder: EntryFinder, hash: ContentHash): Promise<ShardEntry | undefined> {
  try {
    const finding = await finder.find(hash);
    return finding.outcome === 'committed' ? finding.entry : undefined;
  } catch (error) {
    if (error instanceof AriusError && error.code === 'blob-corrupt') {
      // Not a chunk of this content. The upload of the file will say so, for that file alone.
      return undefined;
    }
    throw error;
  }
}

function entryFor(known: ReadonlyMap<ContentHash, ShardEntry>, hash: ContentHash): ShardEntry[] {
  const entry = known.get(hash);
  return entry === undefined ? [] : [entry];
}
