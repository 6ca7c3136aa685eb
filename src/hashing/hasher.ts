import { createHash, type Hash } from 'node:crypto';
import type { ChunkHash, ContentHash, FileTreeHash } from './hashes.ts';
import type { Passphrase } from './passphrase.ts';

/** A hash over bytes that arrive in pieces. */
export interface RunningHash {
  update(bytes: Uint8Array): void;
  /** 64 lower-case hex characters. Ends the hash: nothing may be added afterwards. */
  digest(): string;
}

/**
 * The hash function of one repository: SHA-256 over the passphrase's bytes directly followed by the data (sealed), or over
 * the data alone (plain). Content, tar chunks and filetree nodes all use it; only the type of the result differs.
 */
export class Hasher {
  /** The state after the passphrase, copied for every hash, so that a secret is not fed again and again. */
  readonly #seeded: Hash;

  constructor(passphrase?: Passphrase) {
    this.#seeded = createHash('sha256');
    if (passphrase !== undefined) {
      this.#seeded.update(passphrase.bytes);
    }
  }

  contentHash(bytes: Uint8Array): ContentHash {
    return this.#hash(bytes) as ContentHash;
  }

  chunkHash(bytes: Uint8Array): ChunkHash {
    return this.#hash(bytes) as ChunkHash;
  }

  fileTreeHash(bytes: Uint8Array): FileTreeHash {
    return this.#hash(bytes) as FileTreeHash;
  }

  start(): RunningHash {
    const hash = this.#seeded.copy();
    return {
      update: (bytes) => {
        hash.update(bytes);
      },
      digest: () => hash.digest('hex'),
    };
  }

  #hash(bytes: Uint8Array): string {
    return this.#seeded.copy().update(bytes).digest('hex');
  }
}
