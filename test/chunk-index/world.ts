/**
 * A repository in memory for the tests of the index: storage with a request log, time that passes only when somebody
 * sleeps, any number of cold instances, and the steps of completing a run in their order.
 */

import { createHash } from 'node:crypto';
import { ChunkIndex, type FlushCounters, type IndexVersion } from '../../src/chunk-index/chunk-index.ts';
import { type BodyCodec, createBodyCodec } from '../../src/codec/body-codec.ts';
import { type ContentHash, parseChunkHash, parseContentHash } from '../../src/hashing/hashes.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { PendingEntries } from '../../src/pending/pending-entries.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import type { StorageRequest } from '../../src/storage/memory/gate.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';
import type { Clock } from '../../src/storage/ports.ts';

const REPOSITORY = 'photos';

export class TestClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 1);

  now(): Date {
    return new Date(this.#nowMs);
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}

export interface WorldOptions {
  readonly maxShardEntryCount?: number;
  readonly passphrase?: string;
  readonly cachedEntriesMax?: number;
  /** Bodies as they are: nothing but microtasks between two requests, so that a scheduler is deterministic. */
  readonly bareBodies?: boolean;
  /** Instead of passing the time at once. */
  readonly sleep?: (ms: number) => Promise<void>;
}

const BARE_BODIES: BodyCodec = {
  sealed: false,
  encode: async (plain) => plain,
  decode: async (body) => body,
  encodeStream: (plain) => plain,
  decodeStream: (body) => body,
};

export class World {
  readonly clock = new TestClock();
  readonly storage = new MemoryStorage({ clock: this.clock });
  readonly container = this.storage.container(REPOSITORY);
  readonly staging = this.storage.container('arius-staging');
  readonly table = this.storage.table('pending');
  readonly pending = new PendingEntries({ table: this.table, repository: REPOSITORY, clock: this.clock });
  readonly codec: BodyCodec;
  version: IndexVersion = { epoch: null, layoutVersion: 0 };
  versionReads = 0;
  /** `kind name` of every request that was applied since the last `watch`. */
  requests: string[] = [];
  readonly #options: WorldOptions;

  private constructor(options: WorldOptions) {
    this.#options = options;
    const passphrase = options.passphrase === undefined ? undefined : new Passphrase(options.passphrase);
    this.codec = options.bareBodies === true ? BARE_BODIES : createBodyCodec(passphrase, { level: 1 });
  }

  static async create(options: WorldOptions = {}): Promise<World> {
    const world = new World(options);
    await world.container.createIfMissing();
    await world.staging.createIfMissing();
    await world.table.createIfMissing();
    return world;
  }

  /** A cold instance of the service. */
  index(): ChunkIndex {
    const { maxShardEntryCount, cachedEntriesMax, sleep } = this.#options;
    return new ChunkIndex({
      repository: REPOSITORY,
      container: this.container,
      staging: this.staging,
      pending: this.pending,
      versions: {
        read: async () => {
          this.versionReads += 1;
          return this.version;
        },
      },
      codec: this.codec,
      clock: this.clock,
      random: () => 0.5,
      sleep: sleep ?? (async (ms) => this.clock.advance(ms)),
      ...(maxShardEntryCount === undefined ? {} : { maxShardEntryCount }),
      ...(cachedEntriesMax === undefined ? {} : { cachedEntriesMax }),
    });
  }

  /** Starts a new log of requests. */
  watch(): void {
    this.requests = [];
    this.versionReads = 0;
    this.storage.onRequest = (request) => {
      if (request.phase === 'before') {
        this.requests.push(describeRequest(request));
      }
    };
  }

  /** How many requests of a kind were made under a prefix of names. */
  count(kind: string, namePrefix = ''): number {
    return this.requests.filter((request) => request.startsWith(`${kind} ${namePrefix}`)).length;
  }

  /** Requests to the repository's container, the shards that is. */
  shardRequests(): { lists: number; reads: number; writes: number; deletes: number } {
    const place = `${REPOSITORY}/chunk-index/`;
    return {
      lists: this.count('blob-list', place),
      reads: this.count('blob-read', place),
      writes: this.count('blob-write', place),
      deletes: this.count('blob-delete', place),
    };
  }

  async shardNames(): Promise<string[]> {
    const page = await this.container.listPage('chunk-index/');
    return page.blobs.map((blob) => blob.name.slice('chunk-index/'.length));
  }

  /** Flush, bump, settle, publish, promote. */
  async complete(index: ChunkIndex, jobId = `job-${this.version.layoutVersion}`): Promise<FlushCounters[]> {
    const job = { jobId, owner: 'test' };
    const roots = await index.rootsToFlush();
    const counters: FlushCounters[] = [];
    for (const root of roots) {
      counters.push(await index.flushRoot(root, job));
    }
    this.version = { ...this.version, layoutVersion: this.version.layoutVersion + 1 };
    for (const root of roots) {
      const { flushAgain, remaining } = await index.settleRoot(root, job);
      if (flushAgain || remaining > 0) {
        throw new Error(`The root ${root} did not settle`);
      }
    }
    this.publish(index);
    return counters;
  }

  publish(index: ChunkIndex): void {
    const from = this.version;
    this.version = { ...from, epoch: `snapshot-${from.layoutVersion}` };
    index.promote(from, this.version);
  }
}

export function describeRequest(request: StorageRequest): string {
  return `${request.kind} ${request.container}/${request.name}`;
}

/** The n-th of a fixed sequence of hashes; with a prefix, hashes that begin with it. */
export function hash(n: number, prefix = ''): ContentHash {
  const text = createHash('sha256').update(`content ${n}`).digest('hex');
  return parseContentHash(prefix + text.slice(prefix.length));
}

export function entryOf(contentHash: ContentHash, change: Partial<ShardEntry> = {}): ShardEntry {
  return {
    contentHash,
    chunkHash: parseChunkHash(contentHash),
    originalSize: 2_000_000,
    chunkSize: 1_000_000,
    tier: 'cool',
    ...change,
  };
}

/** `count` entries below a prefix, in hash order. */
export function entries(count: number, prefix = '', from = 0): ShardEntry[] {
  const made = Array.from({ length: count }, (_, n) => entryOf(hash(from + n, prefix)));
  return made.sort((left, right) => (left.contentHash < right.contentHash ? -1 : 1));
}

export function hashesOf(list: readonly ShardEntry[]): ContentHash[] {
  return list.map((entry) => entry.contentHash);
}
