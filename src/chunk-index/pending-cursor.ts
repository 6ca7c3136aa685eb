/** The pending rows of one root, in hash order, one page held at a time. */

import type { ContentHash } from '../hashing/hashes.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { PendingRow } from '../pending/pending-row.ts';

export class PendingCursor {
  readonly #pending: PendingEntries;
  readonly #root: string;
  #rows: readonly PendingRow[] = [];
  #index = 0;
  #next: ContentHash | undefined;
  #ended = false;
  #rowsRead = 0;

  private constructor(pending: PendingEntries, root: string) {
    this.#pending = pending;
    this.#root = root;
  }

  static async open(pending: PendingEntries, root: string): Promise<PendingCursor> {
    const cursor = new PendingCursor(pending, root);
    await cursor.#readPage();
    return cursor;
  }

  get rowsRead(): number {
    return this.#rowsRead;
  }

  /** Undefined when all rows were passed. */
  get head(): PendingRow | undefined {
    return this.#rows[this.#index];
  }

  async advance(): Promise<void> {
    this.#index += 1;
    if (this.#index === this.#rows.length && !this.#ended) {
      await this.#readPage();
    }
  }

  /** The rows of the current page from the head on: what the near future needs. */
  *upcoming(): Generator<PendingRow> {
    for (let index = this.#index; index < this.#rows.length; index += 1) {
      const row = this.#rows[index];
      if (row !== undefined) {
        yield row;
      }
    }
  }

  async #readPage(): Promise<void> {
    const page = await this.#pending.page(this.#root, this.#next);
    this.#rows = page.rows;
    this.#index = 0;
    this.#rowsRead += page.rows.length;
    this.#next = page.next;
    this.#ended = page.next === undefined;
  }
}
