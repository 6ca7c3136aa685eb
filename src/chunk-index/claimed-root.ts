/**
 * A root this flush may write, until a deadline that storage enforces: every write goes through a signature that expires
 * with the claim. Without it, an activity that wakes late could create a fresh parent after a split
 * (`If-None-Match: *` holds, the parent is gone) and hide the leaves from a reader that knows only that the parent wins.
 *
 * Invariant: the claim is given back only if the outcome of every write is known. A write whose response never came may
 * still arrive; until the deadline nobody else may rely on the root standing still.
 */

import { AriusError } from '../errors.ts';
import { ROOT_CLAIM_DURATION_MS, ROOT_CLAIM_MARGIN_MS } from '../limits.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { RootClaim } from '../pending/root-claims.ts';
import type { BlobContainer, Clock } from '../storage/ports.ts';
import { ClaimLost } from './conflict.ts';

export interface ClaimParts {
  readonly pending: PendingEntries;
  readonly container: BlobContainer;
  readonly staging: BlobContainer;
  readonly clock: Clock;
}

/** Containers that refuse everything after the claim's deadline. */
export interface ExpiringContainers {
  readonly shards: BlobContainer;
  readonly staging: BlobContainer;
}

export class ClaimedRoot {
  readonly #parts: ClaimParts;
  #claim: RootClaim;
  #containers: ExpiringContainers;
  #renewing: Promise<void> | undefined;
  #outcomeUnknown = false;

  private constructor(parts: ClaimParts, claim: RootClaim, containers: ExpiringContainers) {
    this.#parts = parts;
    this.#claim = claim;
    this.#containers = containers;
  }

  /** Undefined while somebody else holds the root. */
  static async claim(parts: ClaimParts, root: string, owner: string): Promise<ClaimedRoot | undefined> {
    const claim = await parts.pending.claimRoot(root, owner, parts.clock.now());
    if (claim === undefined) {
      return undefined;
    }
    return new ClaimedRoot(parts, claim, await containersUntil(parts, claim.deadline));
  }

  /** One write or delete under the claim, which is renewed first when it is half over. */
  async write<T>(request: (containers: ExpiringContainers) => Promise<T>): Promise<T> {
    await this.#keepAlive();
    const { deadline } = this.#claim;
    try {
      return await request(this.#containers);
    } catch (error) {
      this.#outcomeUnknown = true;
      throw this.#isRefusedAsExpired(error, deadline) ? new ClaimLost(this.#claim.root, { cause: error }) : error;
    }
  }

  /** Call it when nothing is in flight any more. */
  async release(): Promise<void> {
    if (this.#outcomeUnknown) {
      return;
    }
    try {
      await this.#parts.pending.releaseRoot(this.#claim);
    } catch (error) {
      // The root is flushed all the same, and the deadline gives it back.
      if (!(error instanceof AriusError)) {
        throw error;
      }
    }
  }

  async #keepAlive(): Promise<void> {
    const leftMs = this.#claim.deadline.getTime() - this.#parts.clock.now().getTime();
    if (leftMs < ROOT_CLAIM_DURATION_MS / 2) {
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = undefined;
      });
    }
    await this.#renewing;
  }

  async #renew(): Promise<void> {
    const renewed = await this.#parts.pending.renewClaim(this.#claim, this.#parts.clock.now());
    if (renewed === undefined) {
      this.#outcomeUnknown = true;
      throw new ClaimLost(this.#claim.root);
    }
    this.#claim = renewed;
    this.#containers = await containersUntil(this.#parts, renewed.deadline);
  }

  /** Storage has a clock of its own, so it may refuse a little before ours says so. */
  #isRefusedAsExpired(error: unknown, deadline: Date): boolean {
    const nowMs = this.#parts.clock.now().getTime();
    return (
      error instanceof AriusError && error.code === 'not-allowed' && nowMs >= deadline.getTime() - ROOT_CLAIM_MARGIN_MS
    );
  }
}

async function containersUntil(parts: ClaimParts, deadline: Date): Promise<ExpiringContainers> {
  const [shards, staging] = await Promise.all([
    parts.container.expiringAt(deadline),
    parts.staging.expiringAt(deadline),
  ]);
  return { shards, staging };
}
