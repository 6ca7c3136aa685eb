/**
 * Reads exact numbers of bytes from a stream of pieces. Holds what was asked for plus at most one piece of the source.
 */
export class ByteReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #held: Uint8Array = new Uint8Array(0);
  #ended = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#iterator = source[Symbol.asyncIterator]();
  }

  /** The next bytes without taking them: `count`, or fewer only when the source ends. */
  async peek(count: number): Promise<Uint8Array> {
    await this.#fill(count);
    return this.#held.subarray(0, count);
  }

  /** Takes `count` bytes, or fewer only when the source ends. */
  async read(count: number): Promise<Uint8Array> {
    await this.#fill(count);
    const taken = this.#held.subarray(0, count);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }

  /** Takes between 1 and `countMax` bytes as they come; undefined at the end of the source. */
  async readSome(countMax: number): Promise<Uint8Array | undefined> {
    await this.#fill(1);
    return this.#held.length === 0 ? undefined : this.read(Math.min(countMax, this.#held.length));
  }

  /** All that is left, piece by piece. */
  async *rest(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = await this.readSome(Number.MAX_SAFE_INTEGER);
      if (piece === undefined) {
        return;
      }
      yield piece;
    }
  }

  /** Tells the source that no more will be read, so that it can let go of what it holds. */
  async close(): Promise<void> {
    if (!this.#ended) {
      this.#ended = true;
      await this.#iterator.return?.();
    }
  }

  async #fill(count: number): Promise<void> {
    if (this.#held.length >= count || this.#ended) {
      return;
    }
    const pieces = [this.#held];
    let heldBytes = this.#held.length;
    while (heldBytes < count) {
      const next = await this.#iterator.next();
      if (next.done === true) {
        this.#ended = true;
        break;
      }
      pieces.push(next.value);
      heldBytes += next.value.length;
    }
    const filled = pieces.filter((piece) => piece.length > 0);
    this.#held = filled.length === 1 ? (filled[0] ?? this.#held) : Buffer.concat(filled);
  }
}
