/**
 * A set of strings that can be walked in ordinal order. Changes are cheap and ordering is done when somebody walks, so
 * that a store may take hundreds of thousands of writes between two listings. Invariant: `#sorted` is in order and
 * holds exactly the keys that are neither waiting in `#added` nor in `#removed`.
 */
export class SortedKeys {
  #sorted: string[] = [];
  readonly #added = new Set<string>();
  readonly #removed = new Set<string>();

  /** The key must not be in the set. */
  add(key: string): void {
    if (!this.#removed.delete(key)) {
      this.#added.add(key);
    }
  }

  /** The key must be in the set. */
  delete(key: string): void {
    if (!this.#added.delete(key)) {
      this.#removed.add(key);
    }
  }

  /** Keys from `first` on, in order. Valid until the next change. */
  *from(first: string): Generator<string> {
    this.#settle();
    for (let index = this.#indexOf(first); index < this.#sorted.length; index += 1) {
      yield this.#sorted[index] as string;
    }
  }

  #settle(): void {
    if (this.#removed.size > 0) {
      this.#sorted = this.#sorted.filter((key) => !this.#removed.has(key));
      this.#removed.clear();
    }
    if (this.#added.size > 0) {
      // Two ordered runs: the engine's merge sort takes them in linear time.
      this.#sorted = this.#sorted.concat([...this.#added].sort(compareOrdinal)).sort(compareOrdinal);
      this.#added.clear();
    }
  }

  #indexOf(key: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] as string) < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

/** UTF-16 code units, as the services order names and keys. */
export function compareOrdinal(left: string, right: string): number {
  if (left === right) {
    return 0;
  }
  return left < right ? -1 : 1;
}
