/**
 * Gathers single questions into calls that take many. While `callsMax` calls are under way, further questions wait and
 * then go together, so a slow service is asked less often, not more.
 */
export class Coalescer<K, V> {
  readonly #keysMax: number;
  readonly #callsMax: number;
  readonly #call: (keys: readonly K[]) => Promise<readonly V[]>;
  #waiting: { key: K; resolve(value: V): void; reject(error: unknown): void }[] = [];
  #running = 0;
  #scheduled = false;

  /** `call` answers in the order of its keys. */
  constructor(options: {
    keysMax: number;
    callsMax: number;
    call(keys: readonly K[]): Promise<readonly V[]>;
  }) {
    this.#keysMax = options.keysMax;
    this.#callsMax = options.callsMax;
    this.#call = options.call;
  }

  ask(key: K): Promise<V> {
    return new Promise<V>((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      this.#schedule();
    });
  }

  /** Not at once: whoever asks in the same turn of the event loop belongs together. */
  #schedule(): void {
    if (!this.#scheduled && this.#running < this.#callsMax && this.#waiting.length > 0) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        void this.#runOne();
      });
    }
  }

  async #runOne(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#keysMax);
    this.#running++;
    this.#schedule();
    try {
      const values = await this.#call(batch.map(({ key }) => key));
      batch.forEach(({ resolve, reject }, index) => {
        if (index < values.length) {
          resolve(values[index] as V);
        } else {
          reject(new Error('a call answered fewer values than it was asked for'));
        }
      });
    } catch (error) {
      for (const { reject } of batch) {
        reject(error);
      }
    } finally {
      this.#running--;
      this.#schedule();
    }
  }
}
