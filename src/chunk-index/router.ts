/**
 * Which shard answers for a hash: pure routing over the shard prefixes that exist. Parent wins: the shallowest existing
 * shard on the path is the target; deeper ones beside it are what an interrupted split left (see shardsOnPath).
 */

import type { ContentHash } from '../hashing/hashes.ts';
import { MIN_SHARD_PREFIX_LENGTH } from '../limits.ts';

/** A content hash has 64 hex characters; a shard prefix cannot be longer. */
const HASH_LENGTH = 64;
const PREFIX_TEXT = new RegExp(`^[0-9a-f]{${MIN_SHARD_PREFIX_LENGTH},${HASH_LENGTH}}$`);
const HEX_DIGITS = [...'0123456789abcdef'];

export interface ShardTarget {
  readonly prefix: string;
  /** False: the range is empty, and this is where a new shard for it goes. */
  readonly exists: boolean;
}

/** The first two hex characters: one of 256. */
export function rootOf(hash: ContentHash): string {
  return hash.slice(0, MIN_SHARD_PREFIX_LENGTH);
}

export function isRoot(text: string): boolean {
  return text.length === MIN_SHARD_PREFIX_LENGTH && isShardPrefix(text);
}

/** All 256, in order. */
export function allRoots(): string[] {
  return HEX_DIGITS.flatMap(childrenOf);
}

/** The 16 prefixes one character longer, in hex order. */
export function childrenOf(prefix: string): string[] {
  return HEX_DIGITS.map((digit) => prefix + digit);
}

/** The lowest and the highest hash with this prefix, inclusive; an odd length cuts a byte in half. */
export function boundsOf(prefix: string): { readonly first: string; readonly last: string } {
  return { first: prefix.padEnd(HASH_LENGTH, '0'), last: prefix.padEnd(HASH_LENGTH, 'f') };
}

/** False for names other clients would not read as a shard either. */
export function isShardPrefix(text: string): boolean {
  return PREFIX_TEXT.test(text);
}

export class ChunkIndexRouter {
  readonly #existing: ReadonlySet<string>;
  /** In ordinal order: a parent stands before everything below it. */
  readonly #sorted: readonly string[];
  /** Every proper prefix of an existing shard: makes "does anything deeper exist" one look. */
  readonly #withDeeper: ReadonlySet<string>;

  constructor(prefixes: Iterable<string>) {
    this.#existing = new Set(prefixes);
    this.#sorted = [...this.#existing].sort();
    const withDeeper = new Set<string>();
    for (const prefix of this.#sorted) {
      for (let length = MIN_SHARD_PREFIX_LENGTH; length < prefix.length; length += 1) {
        withDeeper.add(prefix.slice(0, length));
      }
    }
    this.#withDeeper = withDeeper;
  }

  resolveTarget(hash: ContentHash): ShardTarget {
    for (let length = MIN_SHARD_PREFIX_LENGTH; ; length += 1) {
      const prefix = hash.slice(0, length);
      if (this.#existing.has(prefix)) {
        return { prefix, exists: true };
      }
      if (!this.#withDeeper.has(prefix)) {
        return { prefix, exists: false };
      }
    }
  }

  /** Every existing shard whose range holds the hash, the parent first. More than one: an interrupted split. */
  shardsOnPath(hash: ContentHash): string[] {
    const path: string[] = [];
    for (let length = MIN_SHARD_PREFIX_LENGTH; length <= HASH_LENGTH; length += 1) {
      const prefix = hash.slice(0, length);
      if (this.#existing.has(prefix)) {
        path.push(prefix);
      }
      if (!this.#withDeeper.has(prefix)) {
        break;
      }
    }
    return path;
  }

  /** The shard exists, and no other shares any of its range. */
  isAlone(prefix: string): boolean {
    let hasParent = false;
    for (let length = MIN_SHARD_PREFIX_LENGTH; length < prefix.length; length += 1) {
      hasParent ||= this.#existing.has(prefix.slice(0, length));
    }
    return this.#existing.has(prefix) && !this.#withDeeper.has(prefix) && !hasParent;
  }

  /** The existing shards at or below a prefix, in ordinal order (parents first). */
  shardsWithin(prefix: string): string[] {
    const within: string[] = [];
    for (let index = this.#indexOf(prefix); index < this.#sorted.length; index += 1) {
      const shard = this.#sorted[index];
      if (shard === undefined || !shard.startsWith(prefix)) {
        break;
      }
      within.push(shard);
    }
    return within;
  }

  /** The shallowest existing shards that have deeper ones beside them, in order: splits that were interrupted. */
  interruptedSplits(): string[] {
    const interrupted: string[] = [];
    for (const prefix of this.#sorted) {
      const parent = interrupted.at(-1);
      if (this.#withDeeper.has(prefix) && (parent === undefined || !prefix.startsWith(parent))) {
        interrupted.push(prefix);
      }
    }
    return interrupted;
  }

  /** No shard lies inside the range of another. */
  isLegalPartition(): boolean {
    return !this.#sorted.some((prefix) => this.#withDeeper.has(prefix));
  }

  #indexOf(prefix: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < prefix) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
