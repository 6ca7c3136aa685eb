/** Records large chunks, gathered into calls of many. One content that cannot be recorded does not spoil the others. */

import type { EntryResult } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import { ENTRIES_PER_CALL_MAX } from '../../limits.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import { Coalescer } from './coalescer.ts';

export class EntryRecorder {
  readonly #api: Pick<RepositoryApi, 'recordEntries'>;
  readonly #runId: string;
  readonly #calls: Coalescer<ContentHash, EntryResult | AriusError>;

  constructor(api: Pick<RepositoryApi, 'recordEntries'>, runId: string) {
    this.#api = api;
    this.#runId = runId;
    this.#calls = new Coalescer({
      keysMax: ENTRIES_PER_CALL_MAX,
      callsMax: 1,
      call: (contentHashes) => this.#recordTogether(contentHashes),
    });
  }

  /** @throws AriusError `chunk-type-conflict` when another kind of chunk has the name, and what else a call can meet */
  async record(contentHash: ContentHash): Promise<EntryResult> {
    const result = await this.#calls.ask(contentHash);
    if (result instanceof AriusError) {
      throw result;
    }
    return result;
  }

  async #recordTogether(contentHashes: readonly ContentHash[]): Promise<(EntryResult | AriusError)[]> {
    try {
      return await this.#call(contentHashes);
    } catch (error) {
      if (!(error instanceof AriusError) || error.code !== 'chunk-type-conflict') {
        throw error;
      }
      return contentHashes.length === 1 ? [error] : await this.#recordSingly(contentHashes);
    }
  }

  /** To find which of them it was. */
  async #recordSingly(contentHashes: readonly ContentHash[]): Promise<(EntryResult | AriusError)[]> {
    const results: (EntryResult | AriusError)[] = [];
    for (const contentHash of contentHashes) {
      results.push(...(await this.#recordTogether([contentHash])));
    }
    return results;
  }

  async #call(contentHashes: readonly ContentHash[]): Promise<EntryResult[]> {
    const { results } = await this.#api.recordEntries(this.#runId, contentHashes);
    const byHash = new Map<string, EntryResult>(results.map((result) => [result.contentHash, result]));
    return contentHashes.map((hash) => byHash.get(hash) ?? { contentHash: hash, outcome: 'absent' });
  }
}
