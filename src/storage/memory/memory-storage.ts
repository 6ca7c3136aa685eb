/**
 * Storage in memory: the same behaviour as the Azure adapter (one conformance suite holds both), deterministic, with a
 * hook around every request. Waits between attempts take no time.
 */

import { LIST_PAGE_BLOBS_MAX } from '../../limits.ts';
import type { AttemptTiming } from '../attempts.ts';
import { attemptRequest } from '../attempts.ts';
import type { AppendBlobs, BlobContainer, Clock, Queue, Storage, Table } from '../ports.ts';
import { ResolvedBlobContainer } from '../resolved/resolved-blob-container.ts';
import { ResolvedQueue } from '../resolved/resolved-queue.ts';
import { ResolvedTable } from '../resolved/resolved-table.ts';
import { RequestGate, type RequestHook } from './gate.ts';
import { MemoryAccount } from './memory-account.ts';
import { MemoryBlobRequests, type MemoryParts, MemoryQueueRequests, MemoryTableRequests } from './memory-requests.ts';
import { UrlSigner } from './signed-urls.ts';

export interface MemoryStorageOptions {
  readonly clock?: Clock;
  readonly onRequest?: RequestHook;
}

const SYSTEM_CLOCK: Clock = { now: () => new Date() };
const NO_WAITING: AttemptTiming = { sleep: () => Promise.resolve(), random: () => 0 };

export class MemoryStorage implements Storage {
  readonly #parts: MemoryParts;

  constructor(options: MemoryStorageOptions = {}) {
    const clock = options.clock ?? SYSTEM_CLOCK;
    this.#parts = {
      account: new MemoryAccount(clock),
      gate: new RequestGate(clock, options.onRequest),
      signer: new UrlSigner(),
    };
  }

  /** Called before and after each request is applied; see RequestHook for what throwing does. */
  get onRequest(): RequestHook | undefined {
    return this.#parts.gate.hook;
  }

  set onRequest(hook: RequestHook | undefined) {
    this.#parts.gate.hook = hook;
  }

  /** The state itself, past the gate: for tests that look at it or serve it over HTTP. */
  get account(): MemoryAccount {
    return this.#parts.account;
  }

  get signer(): UrlSigner {
    return this.#parts.signer;
  }

  container(name: string): BlobContainer {
    return new ResolvedBlobContainer(new MemoryBlobRequests(this.#parts, name), NO_WAITING);
  }

  appendBlobs(containerName: string): AppendBlobs {
    return new ResolvedBlobContainer(new MemoryBlobRequests(this.#parts, containerName), NO_WAITING);
  }

  table(name: string): Table {
    return new ResolvedTable(new MemoryTableRequests(this.#parts, name), NO_WAITING);
  }

  queue(name: string): Queue {
    return new ResolvedQueue(new MemoryQueueRequests(this.#parts, name), NO_WAITING);
  }

  async listContainersPage(
    prefix: string,
    continuation?: string,
  ): Promise<{ names: readonly string[]; continuation: string | undefined }> {
    return await attemptRequest(NO_WAITING, 'list containers', () =>
      this.#parts.gate.request({ kind: 'container-list', container: '', name: prefix }, () =>
        this.#parts.account.listContainers(prefix, continuation, LIST_PAGE_BLOBS_MAX),
      ),
    );
  }
}
