import { inspect } from 'node:util';

/**
 * The passphrase of a sealed repository, exactly as given: not trimmed, not normalised. It cannot be printed by accident:
 * every way of turning it into text gives `[passphrase]`.
 */
export class Passphrase {
  readonly #bytes: Uint8Array;

  /** @throws RangeError for an empty text: "no passphrase" is `undefined`, never an empty one. */
  constructor(text: string) {
    if (text === '') {
      throw new RangeError('A passphrase must not be empty');
    }
    this.#bytes = new TextEncoder().encode(text);
  }

  /** UTF-8. The caller must not change them. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  toJSON(): string {
    return '[passphrase]';
  }

  toString(): string {
    return '[passphrase]';
  }

  [inspect.custom](): string {
    return '[passphrase]';
  }
}
