/**
 * The queue between two stages of the agent's pipeline. It holds `capacity` items at most: a producer that runs ahead
 * waits, so memory does not grow with what is archived. Every waiting side is released when the run is aborted.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  readonly #capacity: number;
  readonly #signal: AbortSignal;
  #closed = false;
  #wake: (() => void)[] = [];

  constructor(capacity: number, signal: AbortSignal) {
    this.#capacity = Math.max(1, capacity);
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wakeAll(), { once: true });
  }

  get length(): number {
    return this.#items.length;
  }

  /** Waits while the queue is full. Rejects with the reason when the run is aborted. */
  async push(item: T): Promise<void> {
    while (this.#items.length >= this.#capacity && !this.#closed) {
      this.#signal.throwIfAborted();
      await this.#sleep();
    }
    this.#signal.throwIfAborted();
    if (this.#closed) {
      throw new Error('pushed to a closed queue');
    }
    this.#items.push(item);
    this.#wakeAll();
  }

  /** No more items come; what is queued is still delivered. */
  close(): void {
    this.#closed = true;
    this.#wakeAll();
  }

  /** Several consumers may iterate; each item goes to one of them. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    while (true) {
      this.#signal.throwIfAborted();
      if (this.#items.length > 0) {
        const item = this.#items.shift() as T;
        this.#wakeAll();
        yield item;
      } else if (this.#closed) {
        return;
      } else {
        await this.#sleep();
      }
    }
  }

  #sleep(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const resolve of waiting) {
      resolve();
    }
  }
}
