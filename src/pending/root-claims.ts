/**
 * Claims on roots: who may write the shards of a root, and until when. Invariant: a claim is handed to somebody else
 * only when it was given back or when its deadline lies a margin behind; storage itself refuses writes after the
 * deadline (they go through a signature that expires then), so a holder that wakes late cannot write.
 *
 * A holder is never recognised by its name: the engine may run one activity twice, with the same name.
 */

import { randomUUID } from 'node:crypto';
import { ROOT_CLAIM_DURATION_MS, ROOT_CLAIM_MARGIN_MS } from '../limits.ts';
import type { Row, RowValues, Table } from '../storage/ports.ts';
import { partitionOf } from './partitions.ts';
import { CLAIM_ROW_KEY } from './pending-row.ts';

export interface RootClaim {
  readonly root: string;
  readonly owner: string;
  readonly deadline: Date;
  readonly etag: string;
}

export class RootClaims {
  readonly #table: Table;
  readonly #repository: string;

  constructor(table: Table, repository: string) {
    this.#table = table;
    this.#repository = repository;
  }

  /** Undefined while somebody else holds the root. */
  async claim(root: string, owner: string, now: Date): Promise<RootClaim | undefined> {
    const partition = partitionOf(this.#repository, root);
    const deadline = deadlineFrom(now);
    const values = claimValues(owner, deadline);
    const inserted = await this.#table.insert(partition, CLAIM_ROW_KEY, values);
    if (inserted.outcome === 'written') {
      return { root, owner, deadline, etag: inserted.etag };
    }
    const held = await this.#table.get(partition, CLAIM_ROW_KEY);
    if (held === undefined || !isOver(held, now)) {
      return undefined;
    }
    const replaced = await this.#table.replace(partition, CLAIM_ROW_KEY, values, held.etag);
    return replaced.outcome === 'written' ? { root, owner, deadline, etag: replaced.etag } : undefined;
  }

  /** Undefined when the claim was taken over, or is past its deadline: then nobody may count on it any more. */
  async renew(claim: RootClaim, now: Date): Promise<RootClaim | undefined> {
    if (now >= claim.deadline) {
      return undefined;
    }
    const deadline = deadlineFrom(now);
    const replaced = await this.#table.replace(
      partitionOf(this.#repository, claim.root),
      CLAIM_ROW_KEY,
      claimValues(claim.owner, deadline),
      claim.etag,
    );
    return replaced.outcome === 'written' ? { ...claim, deadline, etag: replaced.etag } : undefined;
  }

  /** Only for a holder that knows the outcome of every write it made; otherwise the deadline has to pass. */
  async release(claim: RootClaim): Promise<void> {
    await this.#table.delete(partitionOf(this.#repository, claim.root), CLAIM_ROW_KEY, claim.etag);
  }
}

function deadlineFrom(now: Date): Date {
  return new Date(now.getTime() + ROOT_CLAIM_DURATION_MS);
}

/** The id makes a lost response recognisable: two claims of one owner in one millisecond must not look the same. */
function claimValues(owner: string, deadline: Date): RowValues {
  return { claimId: randomUUID(), owner, deadline: deadline.toISOString() };
}

function isOver(row: Row, now: Date): boolean {
  const deadlineMs = Date.parse(String(row.values.deadline));
  // A row without a readable deadline belongs to no client of this version; it is taken over at once rather than never.
  return Number.isNaN(deadlineMs) || now.getTime() >= deadlineMs + ROOT_CLAIM_MARGIN_MS;
}
