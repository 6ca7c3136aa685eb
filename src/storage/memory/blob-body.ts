/** The bytes of a stored blob, kept as the pieces they came in (blocks, appends). Immutable. */

import { createHash } from 'node:crypto';

export class BlobBody {
  readonly lengthBytes: number;
  readonly #pieces: readonly Uint8Array[];
  #md5: string | undefined;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces;
    this.lengthBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  }

  /** A body of its own: the caller may reuse its buffer. */
  static copyOf(bytes: Uint8Array): BlobBody {
    return new BlobBody([Uint8Array.from(bytes)]);
  }

  static joined(bodies: readonly BlobBody[]): BlobBody {
    return new BlobBody(bodies.flatMap((body) => body.#pieces));
  }

  /** Base64. Computed when somebody asks. */
  get md5(): string {
    if (this.#md5 === undefined) {
      const hash = createHash('md5');
      for (const piece of this.#pieces) {
        hash.update(piece);
      }
      this.#md5 = hash.digest('base64');
    }
    return this.#md5;
  }

  /** The range as views on the stored bytes, none longer than `pieceBytesMax`. Whoever hands them on copies. */
  *views(offsetBytes: number, lengthBytes: number, pieceBytesMax: number): Generator<Uint8Array> {
    const end = Math.min(offsetBytes + lengthBytes, this.lengthBytes);
    let pieceStart = 0;
    for (const piece of this.#pieces) {
      const from = Math.max(offsetBytes - pieceStart, 0);
      const to = Math.min(end - pieceStart, piece.byteLength);
      for (let at = from; at < to; at += pieceBytesMax) {
        yield piece.subarray(at, Math.min(at + pieceBytesMax, to));
      }
      pieceStart += piece.byteLength;
    }
  }
}
