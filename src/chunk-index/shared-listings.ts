/**
 * The listings lookups route by: one per instance, version and root, shared by concurrent requests and kept while the
 * version stands. Invariant: a listing is used only for a version that was read before the listing began. A listing that
 * failed is not kept, and neither is one that a reader found to be out of date.
 */

import { WHOLE_LISTING_ROOTS_MIN } from '../limits.ts';
import type { BlobContainer } from '../storage/ports.ts';
import type { IndexVersion } from './index-version.ts';
import { listAllRoots, listRoot, RootListing, type ShardRef } from './listing.ts';
import { allRoots } from './router.ts';

/** The newest version, and the one before it that requests on their way may still read. */
const VERSIONS_KEPT = 2;

interface KeptListing {
  readonly listing: Promise<RootListing>;
  /** Set once it has arrived. */
  arrived: RootListing | undefined;
}

type VersionListings = Map<string, KeptListing>;

export class SharedListings {
  readonly #container: BlobContainer;
  readonly #versions = new Map<string, VersionListings>();

  constructor(container: BlobContainer) {
    this.#container = container;
  }

  /** Eight or more roots that are not known yet: one listing of everything; fewer: one listing for each. */
  async get(version: IndexVersion, roots: readonly string[]): Promise<Map<string, RootListing>> {
    const kept = this.#ofVersion(version);
    const unknown = roots.filter((root) => !kept.has(root));
    if (unknown.length >= WHOLE_LISTING_ROOTS_MIN) {
      this.#listEverything(kept);
    } else {
      for (const root of unknown) {
        this.#keep(kept, root, listRoot(this.#container, root));
      }
    }
    const wanted = [...kept].filter(([root]) => roots.includes(root));
    return new Map(await Promise.all(wanted.map(async ([root, { listing }]) => [root, await listing] as const)));
  }

  /** A reader met another state than the listing said: the next one lists again, unless somebody already has. */
  forget(version: IndexVersion, root: string, contradicted: ShardRef): void {
    const kept = this.#ofVersion(version);
    const known = kept.get(root);
    // One that has not arrived yet may have begun before the change, so it is not waited for either.
    if (
      known !== undefined &&
      (known.arrived === undefined || known.arrived.etagOf(contradicted.prefix) === contradicted.etag)
    ) {
      kept.delete(root);
    }
  }

  #listEverything(kept: VersionListings): void {
    const everything = listAllRoots(this.#container);
    for (const root of allRoots()) {
      if (!kept.has(root)) {
        this.#keep(
          kept,
          root,
          everything.then((listings) => listings.get(root) ?? new RootListing([])),
        );
      }
    }
  }

  #keep(kept: VersionListings, root: string, listing: Promise<RootListing>): void {
    const entry: KeptListing = { listing, arrived: undefined };
    kept.set(root, entry);
    listing.then(
      (arrived) => {
        entry.arrived = arrived;
      },
      () => {
        if (kept.get(root) === entry) {
          kept.delete(root);
        }
      },
    );
  }

  #ofVersion(version: IndexVersion): VersionListings {
    const key = `${version.layoutVersion} ${version.epoch ?? ''}`;
    const kept = this.#versions.get(key) ?? new Map<string, KeptListing>();
    this.#versions.set(key, kept);
    for (const other of this.#versions.keys()) {
      if (this.#versions.size <= VERSIONS_KEPT) {
        break;
      }
      if (other !== key) {
        this.#versions.delete(other);
      }
    }
    return kept;
  }
}
