/**
 * Lookup of many hashes. The order is part of the contract:
 * pending entries first, then the version, then claims and listings at that version. A settle bumps the version before it
 * removes a pending row; so whoever no longer finds the row reads a version at which the shards are asked again. In the
 * other order an entry is lost that settles in between.
 *
 * A hit is a fact wherever it is found. A miss counts only if every shard that was read still was what the listing said.
 */

import pMap from 'p-map';
import { AriusError } from '../errors.ts';
import type { ContentHash } from '../hashing/hashes.ts';
import {
  CONDITIONAL_WRITE_DELAY_MS_MAX,
  LOOKUP_RELIST_DELAY_BASE_MS,
  LOOKUP_RELIST_MAX,
  PREFIX_LOAD_WORKERS,
  SHARD_LOADS_PER_ROOT_MAX,
} from '../limits.ts';
import type { PendingEntries } from '../pending/pending-entries.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import { backOff, type Pacing } from './backoff.ts';
import type { Coverage, CoverageClaim } from './coverage.ts';
import type { IndexVersion, IndexVersionSource } from './index-version.ts';
import type { RootListing, ShardRef } from './listing.ts';
import { rootOf } from './router.ts';
import { findEntry } from './shard.ts';
import type { ShardStore } from './shard-store.ts';
import type { SharedListings } from './shared-listings.ts';

export interface LookupParts {
  readonly pending: PendingEntries;
  readonly versions: IndexVersionSource;
  readonly coverage: Coverage;
  readonly listings: SharedListings;
  readonly shards: ShardStore;
  readonly pacing: Pacing;
}

type Found = Map<ContentHash, ShardEntry>;

/** Misses are left out. @throws AriusError `chunk-index-corrupt`, or `busy` when the index does not stand still */
export async function lookUp(parts: LookupParts, hashes: readonly ContentHash[]): Promise<Found> {
  const found = await pendingEntries(parts.pending, hashes);
  let open = [...new Set(hashes)].filter((hash) => !found.has(hash));
  if (open.length === 0) {
    return found;
  }
  const version = await parts.versions.read();
  for (let round = 0; round <= LOOKUP_RELIST_MAX; round += 1) {
    if (round > 1) {
      await backOff(parts.pacing, round, LOOKUP_RELIST_DELAY_BASE_MS, CONDITIONAL_WRITE_DELAY_MS_MAX);
    }
    open = await resolveRoots(parts, version, open, found);
    if (open.length === 0) {
      return found;
    }
  }
  throw new AriusError(
    'busy',
    `The shards of ${[...new Set(open.map(rootOf))].join(', ')} kept changing while they were read`,
    'Ask again in a moment.',
    { retryAfterSeconds: 2 },
  );
}

async function pendingEntries(pending: PendingEntries, hashes: readonly ContentHash[]): Promise<Found> {
  const first = await pending.firstPage();
  if (!first.complete) {
    return await pending.getMany(hashes);
  }
  const found: Found = new Map();
  for (const hash of hashes) {
    const entry = first.entries.get(hash);
    if (entry !== undefined) {
      found.set(hash, entry);
    }
  }
  return found;
}

/** Adds what it finds; returns the hashes whose miss cannot be trusted. */
async function resolveRoots(
  parts: LookupParts,
  version: IndexVersion,
  hashes: readonly ContentHash[],
  found: Found,
): Promise<ContentHash[]> {
  const byRoot = new Map<string, ContentHash[]>();
  const claims = new Map<ContentHash, CoverageClaim>();
  const unclaimed = new Set<string>();
  for (const hash of hashes) {
    const root = rootOf(hash);
    const group = byRoot.get(root) ?? [];
    group.push(hash);
    byRoot.set(root, group);
    const claim = parts.coverage.find(hash, version);
    if (claim === undefined) {
      unclaimed.add(root);
    } else {
      claims.set(hash, claim);
    }
  }
  const listings = await parts.listings.get(version, [...unclaimed]);
  const doubtful = await pMap(
    byRoot,
    ([root, group]) =>
      new RootLookup(parts, { version, root, claims, listing: listings.get(root), found }).resolve(group),
    { concurrency: PREFIX_LOAD_WORKERS },
  );
  return doubtful.flat();
}

interface RootLookupFacts {
  readonly version: IndexVersion;
  readonly root: string;
  /** What covered each hash when the request looked. */
  readonly claims: ReadonlyMap<ContentHash, CoverageClaim>;
  /** There whenever a hash of the root was not covered. */
  readonly listing: RootListing | undefined;
  readonly found: Found;
}

/** The walk of one hash down its path. */
interface Walk {
  readonly hash: ContentHash;
  readonly claim: CoverageClaim;
  /** The shards that may hold it, the parent first. */
  readonly path: readonly ShardRef[];
}

class RootLookup {
  readonly #parts: LookupParts;
  readonly #facts: RootLookupFacts;
  readonly #newClaims = new Map<string, CoverageClaim>();
  readonly #contradicted = new Set<CoverageClaim>();

  constructor(parts: LookupParts, facts: RootLookupFacts) {
    this.#parts = parts;
    this.#facts = facts;
  }

  async resolve(hashes: readonly ContentHash[]): Promise<ContentHash[]> {
    const walks = hashes.map((hash) => this.#walkOf(hash));
    let open = walks.filter((walk) => walk.path.length > 0);
    // Usually one step. More where a split was interrupted: what the parent does not hold may be in a deeper shard.
    for (let depth = 0; open.length > 0; depth += 1) {
      await this.#search(open, depth);
      open = open.filter((walk) => !this.#facts.found.has(walk.hash) && walk.path.length > depth + 1);
    }
    for (const claim of this.#newClaims.values()) {
      if (!this.#contradicted.has(claim)) {
        this.#parts.coverage.add(claim);
      }
    }
    return walks
      .filter((walk) => this.#contradicted.has(walk.claim) && !this.#facts.found.has(walk.hash))
      .map((walk) => walk.hash);
  }

  #walkOf(hash: ContentHash): Walk {
    const claim = this.#claimOf(hash);
    return { hash, claim, path: claim.shards.filter((shard) => hash.startsWith(shard.prefix)) };
  }

  #claimOf(hash: ContentHash): CoverageClaim {
    const { version, listing, claims, root } = this.#facts;
    const known = claims.get(hash);
    if (known !== undefined) {
      return known;
    }
    if (listing === undefined) {
      throw new Error(`The root ${root} was not listed although a hash of it is not covered`);
    }
    const { prefix } = listing.router.resolveTarget(hash);
    const claim = this.#newClaims.get(prefix) ?? { prefix, version, shards: listing.refsWithin(prefix) };
    this.#newClaims.set(prefix, claim);
    return claim;
  }

  /** Looks into the shard at this depth of each path; every shard is loaded once. */
  async #search(walks: readonly Walk[], depth: number): Promise<void> {
    const byShard = new Map<string, { ref: ShardRef; walks: Walk[] }>();
    for (const walk of walks) {
      const ref = walk.path[depth];
      if (ref !== undefined) {
        const group = byShard.get(ref.prefix) ?? { ref, walks: [] };
        group.walks.push(walk);
        byShard.set(ref.prefix, group);
      }
    }
    await pMap(byShard.values(), (group) => this.#searchShard(group.ref, group.walks), {
      concurrency: SHARD_LOADS_PER_ROOT_MAX,
    });
  }

  async #searchShard(ref: ShardRef, walks: readonly Walk[]): Promise<void> {
    const shard = await this.#parts.shards.load(ref);
    if (shard?.etag !== ref.etag) {
      // Gone: a split is racing. Changed: a flush is. Either way what was known of this range is out of date.
      this.#parts.listings.forget(this.#facts.version, this.#facts.root, ref);
      for (const { claim } of walks) {
        this.#contradicted.add(claim);
        this.#parts.coverage.remove(claim);
      }
    }
    for (const { hash } of walks) {
      const entry = shard === undefined ? undefined : findEntry(shard.entries, hash);
      if (entry !== undefined) {
        this.#facts.found.set(hash, entry);
      }
    }
  }
}
