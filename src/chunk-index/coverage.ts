/**
 * Coverage claims: what this instance knows about a prefix, and at which version it knew it. A claim is trusted at that
 * version only. Invariants: claims are pairwise non-nested (a new one removes its ancestors and descendants), so at most
 * one covers a hash; a claim carries the version that was read before the listing it comes from.
 */

import type { ContentHash } from '../hashing/hashes.ts';
import { COVERAGE_CLAIMS_MAX, MAX_COVERAGE_PREFIX_LENGTH, MIN_SHARD_PREFIX_LENGTH } from '../limits.ts';
import { type IndexVersion, isSameVersion } from './index-version.ts';
import type { ShardRef } from './listing.ts';

export interface CoverageClaim {
  readonly prefix: string;
  readonly version: IndexVersion;
  /** What exists at or below the prefix, parents first; none: the range is known to be empty. */
  readonly shards: readonly ShardRef[];
}

export class Coverage {
  readonly #claimsMax: number;
  readonly #roots = new Map<string, Map<string, CoverageClaim>>();
  #count = 0;

  constructor(claimsMax: number = COVERAGE_CLAIMS_MAX) {
    this.#claimsMax = claimsMax;
  }

  /** The claim that covers the hash, if there is one at this version. */
  find(hash: ContentHash, version: IndexVersion): CoverageClaim | undefined {
    const claims = this.#roots.get(rootOfPrefix(hash));
    if (claims === undefined) {
      return undefined;
    }
    for (let length = MIN_SHARD_PREFIX_LENGTH; length <= MAX_COVERAGE_PREFIX_LENGTH; length += 1) {
      const claim = claims.get(hash.slice(0, length));
      if (claim !== undefined) {
        return isSameVersion(claim.version, version) ? claim : undefined;
      }
    }
    return undefined;
  }

  /** A claim on a prefix deeper than the cap is not kept: its range revalidates, harmlessly. */
  add(claim: CoverageClaim): void {
    if (claim.prefix.length > MAX_COVERAGE_PREFIX_LENGTH) {
      return;
    }
    if (this.#count >= this.#claimsMax) {
      // Dropping what is known is always safe; doing it at once keeps the bound without a second order to maintain.
      this.clear();
    }
    const root = rootOfPrefix(claim.prefix);
    const claims = this.#roots.get(root) ?? new Map<string, CoverageClaim>();
    this.#roots.set(root, claims);
    for (const prefix of claims.keys()) {
      if (prefix.startsWith(claim.prefix) || claim.prefix.startsWith(prefix)) {
        claims.delete(prefix);
        this.#count -= 1;
      }
    }
    claims.set(claim.prefix, claim);
    this.#count += 1;
  }

  /** Forgets exactly this claim; one that was put in its place meanwhile stays. */
  remove(claim: CoverageClaim): void {
    const claims = this.#roots.get(rootOfPrefix(claim.prefix));
    if (claims?.get(claim.prefix) === claim) {
      claims.delete(claim.prefix);
      this.#count -= 1;
    }
  }

  /**
   * After a publication: what was validated at `from` holds at `to`, without asking. Only the epoch may differ: a claim
   * from before a change of layout says nothing about what came after, so it stays where it is and revalidates.
   */
  promote(from: IndexVersion, to: IndexVersion): void {
    if (from.layoutVersion !== to.layoutVersion) {
      return;
    }
    for (const claims of this.#roots.values()) {
      for (const claim of claims.values()) {
        if (isSameVersion(claim.version, from)) {
          claims.set(claim.prefix, { ...claim, version: to });
        }
      }
    }
  }

  clear(): void {
    this.#roots.clear();
    this.#count = 0;
  }
}

function rootOfPrefix(prefix: string): string {
  return prefix.slice(0, MIN_SHARD_PREFIX_LENGTH);
}
