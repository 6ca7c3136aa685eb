/**
 * State and journal together. A commit is applied to the state at once and reaches the journal at the end of the
 * event-loop turn, together with the turn's other commits, in order. Nobody acts on a commit, or tells anyone about
 * it, before its promise has resolved.
 */

import type { TestHooks } from '../test-hooks.ts';
import { HubState, type Operation } from './hub-state.ts';
import { Journal } from './journal.ts';

export type CommitKind = 'client' | 'episode' | 'activity' | 'timer';

export class Hub {
  readonly state = new HubState();
  readonly #journal: Journal | undefined;
  readonly #hooks: TestHooks;
  readonly #onWriteError: (error: unknown) => void;
  #lines: string[] = [];
  #flushed: Promise<void> | undefined;
  #closed = false;

  /** Without a directory the same code runs with nothing written. */
  constructor(directory: string | undefined, hooks: TestHooks, onWriteError: (error: unknown) => void) {
    this.#journal = directory === undefined ? undefined : Journal.open(directory, this.state);
    this.#hooks = hooks;
    this.#onWriteError = onWriteError;
  }

  commit(kind: CommitKind, operations: readonly Operation[]): Promise<void> {
    this.#hooks.atCommit('before', kind);
    for (const operation of operations) this.state.apply(operation);
    if (this.#journal !== undefined) this.#lines.push(JSON.stringify(operations));
    this.#flushed ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#flush();
        resolve();
      });
    });
    this.#hooks.atCommit('after', kind, () => this.#flush());
    return this.#flushed;
  }

  /** What is committed afterwards is not written: the next process does that work again. */
  close(): void {
    this.#flush();
    this.#closed = true;
    this.#journal?.close();
  }

  #flush(): void {
    this.#flushed = undefined;
    const lines = this.#lines.splice(0);
    if (lines.length === 0 || this.#closed) return;
    try {
      this.#journal?.append(lines);
    } catch (error) {
      this.#onWriteError(error);
    }
  }
}
