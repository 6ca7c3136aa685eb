/** The routes of one repository, by what they do, with the batching the contract's limits allow. */

import type {
  CompleteRunRequest,
  EntriesResponse,
  LookupResponse,
  MembersRequest,
  MembersResponse,
  OperationInfo,
  RepositoryInfo,
  RunInfo,
  SnapshotInfo,
  SnapshotList,
  StagingGrantResponse,
  StartRunRequest,
} from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import type { ChunkHash, ContentHash } from '../../hashing/hashes.ts';
import { NAMES_PER_GRANT_MAX, OPERATION_POLL_MS_MAX, OPERATION_WAIT_MS_MAX } from '../../limits.ts';
import { Coalescer } from '../archive/coalescer.ts';
import { type Sleep, sleep } from './retry.ts';
import type { ServiceClient } from './service-client.ts';

export class RepositoryApi {
  readonly repository: string;
  readonly #client: ServiceClient;
  readonly #params: { repository: string };
  readonly #createGrants: Coalescer<string, string>;
  readonly #readGrants: Coalescer<string, string>;
  readonly #signal: AbortSignal;

  constructor(client: ServiceClient, repository: string, signal: AbortSignal) {
    this.repository = repository;
    this.#client = client;
    this.#params = { repository };
    this.#signal = signal;
    this.#createGrants = this.#grants('create');
    this.#readGrants = this.#grants('read');
  }

  get(): Promise<RepositoryInfo> {
    return this.#client.call('getRepository', { params: this.#params });
  }

  create(kind: 'plain' | 'sealed', tier: 'hot' | 'cool' | 'cold' | undefined): Promise<RepositoryInfo> {
    return this.#client.call('createRepository', {
      body: { name: this.repository, kind, ...(tier === undefined ? {} : { tier }) },
    });
  }

  startRun(body: StartRunRequest): Promise<RunInfo> {
    return this.#client.call('startRun', { params: this.#params, body });
  }

  completeRun(runId: string, body: CompleteRunRequest): Promise<OperationInfo> {
    return this.#client.call('completeRun', { params: { ...this.#params, runId }, body });
  }

  lookup(
    hashes: readonly ContentHash[],
    options: { purpose: 'archive' | 'restore'; runId?: string },
  ): Promise<LookupResponse> {
    return this.#client.call('lookup', { params: this.#params, body: { hashes: [...hashes], ...options } });
  }

  /** A signed URL that creates one blob. Asked for right before its use: it never grows old. */
  createGrant(name: string): Promise<string> {
    return this.#createGrants.ask(name);
  }

  readGrant(name: string): Promise<string> {
    return this.#readGrants.ask(name);
  }

  stagingGrant(contentHash: ContentHash, runId: string): Promise<StagingGrantResponse> {
    return this.#client.call('stagingGrant', { params: this.#params, body: { contentHash, runId } });
  }

  commitChunk(
    hash: ContentHash,
    body: { runId: string; stagingName: string; originalSize: number; chunkSize: number },
  ): Promise<OperationInfo> {
    return this.#client.call('commitChunk', { params: { ...this.#params, hash }, body });
  }

  recordEntries(runId: string, contentHashes: readonly ContentHash[]): Promise<EntriesResponse> {
    return this.#client.call('recordEntries', {
      params: this.#params,
      body: { runId, contentHashes: [...new Set(contentHashes)] },
    });
  }

  recordMembers(tarHash: ChunkHash, body: MembersRequest): Promise<MembersResponse> {
    return this.#client.call('recordMembers', { params: { ...this.#params, hash: tarHash }, body });
  }

  snapshot(name: string): Promise<SnapshotInfo> {
    return this.#client.call('getSnapshot', { params: { ...this.#params, name } });
  }

  /** Oldest first, page by page. */
  async *snapshotPages(): AsyncGenerator<SnapshotList, void, void> {
    let continuation: string | undefined;
    do {
      const page = await this.#client.call('listSnapshots', { params: this.#params, query: { continuation } });
      yield page;
      continuation = page.continuation ?? undefined;
    } while (continuation !== undefined);
  }

  /** Waits for an operation to end well. Its own failure is thrown as what it is. */
  async waitFor(
    operation: OperationInfo,
    options: { onProgress?(operation: OperationInfo): void; sleep?: Sleep } = {},
  ): Promise<OperationInfo> {
    const startedMs = performance.now();
    let current = operation;
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.5, OPERATION_POLL_MS_MAX)) {
      options.onProgress?.(current);
      if (current.state === 'succeeded') {
        return current;
      }
      if (current.state === 'failed') {
        throw operationError(current);
      }
      if (performance.now() - startedMs > OPERATION_WAIT_MS_MAX) {
        throw new AriusError(
          'not-finished',
          `The operation ${current.operationId} is still ${current.phase}.`,
          'Run the same command again later; it continues where this one stopped.',
        );
      }
      await (options.sleep ?? sleep)(pauseMs, this.#signal);
      current = await this.#client.call('getOperation', {
        params: { ...this.#params, operationId: current.operationId },
      });
    }
  }

  #grants(purpose: 'create' | 'read'): Coalescer<string, string> {
    return new Coalescer({
      keysMax: NAMES_PER_GRANT_MAX,
      callsMax: 2,
      call: async (names) => {
        const { grants } = await this.#client.call('grants', {
          params: this.#params,
          body: { purpose, names: [...new Set(names)] },
        });
        const byName = new Map(grants.map((grant) => [grant.name, grant.url]));
        return names.map((name) => byName.get(name) ?? missing(name));
      },
    });
  }
}

function missing(what: string): never {
  throw new AriusError(
    'internal',
    `The service left ${what} out of its answer.`,
    'Check that agent and service match.',
  );
}

function operationError(operation: OperationInfo): AriusError {
  if (operation.error === null) {
    const detail = `The operation ${operation.operationId} failed without a reason.`;
    return new AriusError('internal', detail, 'Run the same command again.');
  }
  const { retryAfterSeconds, ...problem } = operation.error;
  return AriusError.fromProblem(retryAfterSeconds === undefined ? problem : { ...problem, retryAfterSeconds });
}
