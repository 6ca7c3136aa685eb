/**
 * What exists under `chunk-index/`. Names come in ordinal order, a parent before everything below it, and splits upload
 * leaves before they delete their parent: so a listing that no longer sees the parent sees the leaves.
 */

import { MIN_SHARD_PREFIX_LENGTH } from '../limits.ts';
import { CHUNK_INDEX_PREFIX, shardBlobName } from '../repository/blob-names.ts';
import type { BlobContainer } from '../storage/ports.ts';
import { ChunkIndexRouter, isShardPrefix } from './router.ts';

/** A shard as some listing saw it. */
export interface ShardRef {
  readonly prefix: string;
  readonly etag: string;
}

/** The shards of one root, as one listing saw them. */
export class RootListing {
  readonly router: ChunkIndexRouter;
  readonly #etags: ReadonlyMap<string, string>;

  constructor(shards: Iterable<ShardRef>) {
    this.#etags = new Map(Array.from(shards, ({ prefix, etag }) => [prefix, etag]));
    this.router = new ChunkIndexRouter(this.#etags.keys());
  }

  etagOf(prefix: string): string | undefined {
    return this.#etags.get(prefix);
  }

  /** The shards at or below a prefix, parents first. */
  refsWithin(prefix: string): ShardRef[] {
    return this.router.shardsWithin(prefix).map((shard) => ({ prefix: shard, etag: this.#etags.get(shard) ?? '' }));
  }
}

/** Every shard whose prefix starts with `prefix`, in order, a page at a time. Other blobs are passed over. */
async function* listShards(container: BlobContainer, prefix = ''): AsyncGenerator<ShardRef> {
  let continuation: string | undefined;
  do {
    const page = await container.listPage(shardBlobName(prefix), continuation === undefined ? {} : { continuation });
    for (const blob of page.blobs) {
      const shard = blob.name.slice(CHUNK_INDEX_PREFIX.length);
      if (isShardPrefix(shard)) {
        yield { prefix: shard, etag: blob.etag };
      }
    }
    continuation = page.continuation;
  } while (continuation !== undefined);
}

export async function listRoot(container: BlobContainer, root: string): Promise<RootListing> {
  const shards: ShardRef[] = [];
  for await (const shard of listShards(container, root)) {
    shards.push(shard);
  }
  return new RootListing(shards);
}

/** All roots that have shards. */
export async function listAllRoots(container: BlobContainer): Promise<Map<string, RootListing>> {
  const byRoot = new Map<string, ShardRef[]>();
  for await (const shard of listShards(container)) {
    const root = shard.prefix.slice(0, MIN_SHARD_PREFIX_LENGTH);
    const shards = byRoot.get(root) ?? [];
    shards.push(shard);
    byRoot.set(root, shards);
  }
  return new Map(Array.from(byRoot, ([root, shards]) => [root, new RootListing(shards)]));
}

/**
 * The roots in which a parent stands beside deeper shards, from one listing, holding one name at a time: in ordinal
 * order everything below a parent follows it directly.
 */
export async function findInterruptedSplits(container: BlobContainer): Promise<string[]> {
  const roots = new Set<string>();
  let parent: string | undefined;
  for await (const { prefix } of listShards(container)) {
    if (parent !== undefined && prefix.startsWith(parent)) {
      roots.add(prefix.slice(0, MIN_SHARD_PREFIX_LENGTH));
    } else {
      parent = prefix;
    }
  }
  return [...roots];
}
