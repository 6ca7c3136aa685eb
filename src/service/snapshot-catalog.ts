/**
 * The snapshots of one repository. They are immutable, so a decoded manifest stays in memory (a bounded number of them);
 * which snapshots exist is always asked of storage, because other clients publish too.
 */

import { LRUCache } from 'lru-cache';
import pMap from 'p-map';
import type { BodyCodec } from '../codec/body-codec.ts';
import { AriusError } from '../errors.ts';
import {
  CACHED_SNAPSHOTS_MAX,
  SNAPSHOT_DECODED_BYTES_MAX,
  SNAPSHOT_LOAD_WORKERS,
  SNAPSHOTS_PER_PAGE_MAX,
} from '../limits.ts';
import { SNAPSHOTS_PREFIX, snapshotBlobName } from '../repository/blob-names.ts';
import { parseSnapshot, parseSnapshotName, type SnapshotManifest } from '../repository/snapshot.ts';
import type { BlobContainer } from '../storage/ports.ts';
import { decodeStored, namingBlob, storedBytesMax } from './stored-bodies.ts';

export interface Snapshot {
  /** The blob's leaf name. */
  readonly name: string;
  readonly manifest: SnapshotManifest;
}

export interface UnreadableSnapshot {
  readonly name: string;
  readonly reason: string;
}

export interface SnapshotPage {
  readonly snapshots: readonly Snapshot[];
  readonly unreadable: readonly UnreadableSnapshot[];
  readonly continuation: string | undefined;
}

export class SnapshotCatalog {
  readonly #container: BlobContainer;
  readonly #codec: BodyCodec;
  readonly #manifests = new LRUCache<string, SnapshotManifest>({ max: CACHED_SNAPSHOTS_MAX });

  constructor(container: BlobContainer, codec: BodyCodec) {
    this.#container = container;
    this.#codec = codec;
  }

  /** All names, oldest first. Blobs under `snapshots/` with any other kind of name are not snapshots. */
  async names(): Promise<readonly string[]> {
    const names: string[] = [];
    let continuation: string | undefined;
    do {
      const page = await this.#container.listPage(SNAPSHOTS_PREFIX, {
        ...(continuation === undefined ? {} : { continuation }),
      });
      names.push(...snapshotNames(page.blobs));
      continuation = page.continuation;
    } while (continuation !== undefined);
    return names;
  }

  async newestName(): Promise<string | undefined> {
    return (await this.names()).at(-1);
  }

  /** @returns undefined when there is no such snapshot */
  async find(name: string): Promise<Snapshot | undefined> {
    const known = this.#manifests.get(name);
    if (known !== undefined) {
      return { name, manifest: known };
    }
    const blobName = snapshotBlobName(name);
    const blob = await this.#container.read(blobName, storedBytesMax(SNAPSHOT_DECODED_BYTES_MAX));
    if (blob === undefined) {
      return undefined;
    }
    const plain = await decodeStored(this.#codec, blobName, blob.bytes, SNAPSHOT_DECODED_BYTES_MAX);
    const manifest = await namingBlob(blobName, () => Promise.resolve(parseSnapshot(plain)));
    this.#manifests.set(name, manifest);
    return { name, manifest };
  }

  /** The newest snapshot that a run of this source published. Unreadable ones are passed over. */
  async newestOf(source: string): Promise<Snapshot | undefined> {
    const newestFirst = [...(await this.names())].reverse();
    for (let at = 0; at < newestFirst.length; at += SNAPSHOT_LOAD_WORKERS) {
      const loaded = await this.#load(newestFirst.slice(at, at + SNAPSHOT_LOAD_WORKERS));
      const found = loaded.snapshots.find((snapshot) => snapshot.manifest.source === source);
      if (found !== undefined) {
        return found;
      }
    }
    return undefined;
  }

  /** One page, oldest first; with a source, only the snapshots of that source among them. */
  async page(continuation: string | undefined, source: string | undefined): Promise<SnapshotPage> {
    const listed = await this.#container.listPage(SNAPSHOTS_PREFIX, {
      pageSize: SNAPSHOTS_PER_PAGE_MAX,
      ...(continuation === undefined ? {} : { continuation }),
    });
    const { snapshots, unreadable } = await this.#load(snapshotNames(listed.blobs));
    return {
      snapshots: snapshots.filter((snapshot) => source === undefined || snapshot.manifest.source === source),
      unreadable,
      continuation: listed.continuation,
    };
  }

  async #load(names: readonly string[]): Promise<{ snapshots: Snapshot[]; unreadable: UnreadableSnapshot[] }> {
    const snapshots: Snapshot[] = [];
    const unreadable: UnreadableSnapshot[] = [];
    const loaded = await pMap(names, async (name) => await this.#tryFind(name), { concurrency: SNAPSHOT_LOAD_WORKERS });
    for (const each of loaded) {
      if (each !== undefined) {
        ('manifest' in each ? snapshots : unreadable).push(each as Snapshot & UnreadableSnapshot);
      }
    }
    return { snapshots, unreadable };
  }

  /** One snapshot that cannot be read must not hide all others. */
  async #tryFind(name: string): Promise<Snapshot | UnreadableSnapshot | undefined> {
    try {
      return await this.find(name);
    } catch (error) {
      if (error instanceof AriusError && error.code === 'blob-corrupt') {
        return { name, reason: error.message };
      }
      throw error;
    }
  }
}

function snapshotNames(blobs: readonly { readonly name: string }[]): string[] {
  return blobs
    .map((blob) => blob.name.slice(SNAPSHOTS_PREFIX.length))
    .filter((leaf) => parseSnapshotName(leaf) !== undefined);
}
