/**
 * The one door all requests of the memory adapter pass. A request is applied at once, between two awaits of the hook,
 * so a simulation decides the order of requests, loses them, loses their responses, or crashes the caller.
 */

import type { Clock } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';

export type StorageRequestKind =
  | 'container-create'
  | 'container-head'
  | 'container-list'
  | 'blob-head'
  | 'blob-read'
  | 'blob-write'
  | 'blob-delete'
  | 'blob-list'
  | 'block-stage'
  | 'block-stage-from-url'
  | 'block-commit'
  | 'block-list'
  | 'append-create'
  | 'append-write'
  | 'table-create'
  | 'row-read'
  | 'row-insert'
  | 'row-replace'
  | 'row-upsert'
  | 'row-delete'
  | 'row-query'
  | 'row-batch'
  | 'queue-create'
  | 'queue-send'
  | 'queue-receive'
  | 'queue-delete';

export interface StorageRequest {
  readonly phase: 'before' | 'after';
  readonly kind: StorageRequestKind;
  /** The container, table or queue. */
  readonly container: string;
  /** The blob, `{partition key}/{row key}`, the partition key of a batch, the prefix of a listing; or empty. */
  readonly name: string;
}

/**
 * Throwing a StorageUnanswered before: the request is lost. After: it was applied and its response is lost. The adapter
 * then does what it does in production: it tries again and reads back. Any other error goes straight to the caller, as
 * when a process dies there.
 */
export type RequestHook = (request: StorageRequest) => void | Promise<void>;

export class RequestGate {
  readonly #clock: Clock;
  hook: RequestHook | undefined;

  constructor(clock: Clock, hook: RequestHook | undefined) {
    this.#clock = clock;
    this.hook = hook;
  }

  async request<T>(
    request: Omit<StorageRequest, 'phase'> & { readonly deadline?: Date | undefined },
    apply: () => T,
  ): Promise<T> {
    const { deadline, ...facts } = request;
    await this.hook?.({ ...facts, phase: 'before' });
    // Storage looks at the signature when the request arrives, not when it was sent.
    if (deadline !== undefined && this.#clock.now() >= deadline) {
      throw new StorageRefusal(403, 'AuthenticationFailed');
    }
    let answer: T | StorageRefusal;
    try {
      answer = apply();
    } catch (error) {
      if (!(error instanceof StorageRefusal)) {
        throw error;
      }
      answer = error;
    }
    // A refusal travels back the same way and can be lost as well.
    await this.hook?.({ ...facts, phase: 'after' });
    if (answer instanceof StorageRefusal) {
      throw answer;
    }
    return answer;
  }
}
