/** Records large chunks, gathered into calls of many. What stands in the way of one content is answered for it alone. */

import type { EntryResult } from '../../contract/schemas.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import { ENTRIES_PER_CALL_MAX } from '../../limits.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import { Coalescer } from './coalescer.ts';

export class EntryRecorder {
  readonly #api: Pick<RepositoryApi, 'recordEntries'>;
  readonly #runId: string;
  readonly #calls: Coalescer<ContentHash, EntryResult>;

  constructor(api: Pick<RepositoryApi, 'recordEntries'>, runId: string) {
    this.#api = api;
    this.#runId = runId;
    this.#calls = new Coalescer({
      keysMax: ENTRIES_PER_CALL_MAX,
      callsMax: 1,
      call: (contentHashes) => this.#call(contentHashes),
    });
  }

  async record(contentHash: ContentHash): Promise<EntryResult> {
    return await this.#calls.ask(contentHash);
  }

  async #call(contentHashes: readonly ContentHash[]): Promise<EntryResult[]> {
    const { results } = await this.#api.recordEntries(this.#runId, contentHashes);
    const byHash = new Map<string, EntryResult>(results.map((result) => [result.contentHash, result]));
    return contentHashes.map((hash) => byHash.get(hash) ?? { contentHash: hash, outcome: 'absent' });
  }
}
