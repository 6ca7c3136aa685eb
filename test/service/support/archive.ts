/**
 * A service over memory storage, and an agent's side of the protocol in its shortest form: what a test needs to bring
 * chunks, tars and filetrees into a repository as an agent would.
 */

import { randomUUID } from 'node:crypto';
import { type BodyCodec, createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import type { ChunkHash, ContentHash, FileTreeHash } from '../../../src/hashing/hashes.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { chunkBlobName, contentTypeOf, filetreeBlobName } from '../../../src/repository/blob-names.ts';
import { formatChunkMetadata } from '../../../src/repository/chunk-metadata.ts';
import { type FileTreeEntry, serializeFileTree } from '../../../src/repository/filetree.ts';
import { Service } from '../../../src/service/service.ts';
import { countingStorage } from '../../../src/storage/counting.ts';
import { MemoryStorage } from '../../../src/storage/memory/memory-storage.ts';
import type { AccessTier, BlobContainer } from '../../../src/storage/ports.ts';
import { collected } from '../../support/bytes.ts';

/** A clock that stands still until a test moves it. */
class TestClock {
  #now = Date.parse('2026-05-01T12:00:00.000Z');

  now(): Date {
    return new Date(this.#now);
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}

export interface ArchiveOptions {
  readonly passphrase?: string;
  readonly servicePassphrase?: string | undefined;
  readonly maxShardEntryCount?: number;
}

export class Archive {
  readonly clock = new TestClock();
  readonly memory = new MemoryStorage({ clock: this.clock });
  readonly counting = countingStorage(this.memory);
  readonly name = 'photos';
  readonly codec: BodyCodec;
  readonly hasher: Hasher;
  readonly container: BlobContainer;
  readonly staging: BlobContainer;
  service: Service;
  readonly #options: ArchiveOptions;

  constructor(options: ArchiveOptions = {}) {
    const passphrase = options.passphrase === undefined ? undefined : new Passphrase(options.passphrase);
    this.#options = options;
    this.codec = createBodyCodec(passphrase);
    this.hasher = new Hasher(passphrase);
    // What the "agent" does goes past the counters.
    this.container = this.memory.container(this.name);
    this.staging = this.memory.container('arius-staging');
    this.service = this.newService();
  }

  /** Another instance of the function app: the same storage, nothing remembered. */
  newService(): Service {
    const { passphrase, maxShardEntryCount } = this.#options;
    const known = 'servicePassphrase' in this.#options ? this.#options.servicePassphrase : passphrase;
    return new Service({
      storage: this.counting.storage,
      clock: this.clock,
      jobsQueue: this.counting.storage.queue('arius-jobs'),
      passphrases: { passphraseOf: () => (known === undefined ? undefined : new Passphrase(known)) },
      ...(maxShardEntryCount === undefined ? {} : { maxShardEntryCount }),
    });
  }

  async create(): Promise<this> {
    await this.service.ready();
    const kind = this.#options.passphrase === undefined ? 'plain' : 'sealed';
    await this.service.repositories.create({ name: this.name, kind });
    return this;
  }

  async startRun(source = 'nas:/photos', runId: string = randomUUID()): Promise<string> {
    await this.service.runs.start(this.name, { runId, source });
    return runId;
  }

  hashOf(text: string): ContentHash {
    return this.hasher.contentHash(Buffer.from(text));
  }

  /** Uploads a large chunk, as an agent does. @returns its content hash */
  async uploadLarge(text: string, tier: AccessTier = 'cool'): Promise<ContentHash> {
    const contentHash = this.hashOf(text);
    const body = await this.codec.encode(Buffer.from(text));
    await this.container.write(chunkBlobName(contentHash), body, {
      condition: { absent: true },
      contentType: contentTypeOf('large', this.codec.sealed),
      metadata: formatChunkMetadata({ type: 'large', originalSize: text.length, chunkSize: body.length }),
      tier,
    });
    return contentHash;
  }

  /** Uploads something that stands for a tar: the service never looks inside one. */
  async uploadTar(text: string, tier: AccessTier = 'cool'): Promise<ChunkHash> {
    const tarHash = this.hasher.chunkHash(Buffer.from(text));
    const body = await this.codec.encode(Buffer.from(text));
    await this.container.write(chunkBlobName(tarHash), body, {
      condition: { absent: true },
      contentType: contentTypeOf('tar', this.codec.sealed),
      metadata: formatChunkMetadata({ type: 'tar', chunkSize: body.length }),
      tier,
    });
    return tarHash;
  }

  /** A body without sentinel. */
  async uploadDebris(hash: ContentHash | ChunkHash): Promise<void> {
    const options = { condition: { absent: true }, contentType: 'application/octet-stream', tier: 'cold' } as const;
    await this.container.write(chunkBlobName(hash), Buffer.from('half a body'), options);
  }

  /** Uploads a large chunk and records it. @returns its content hash */
  async recordLarge(runId: string, text: string): Promise<ContentHash> {
    const contentHash = await this.uploadLarge(text);
    await this.service.recording.entries(this.name, { runId, contentHashes: [contentHash] });
    return contentHash;
  }

  async uploadTree(entries: readonly FileTreeEntry[]): Promise<FileTreeHash> {
    const text = serializeFileTree(entries);
    const hash = this.hasher.fileTreeHash(text);
    await this.container.write(filetreeBlobName(hash), await this.codec.encode(text), {
      condition: { absent: true },
      contentType: contentTypeOf('filetree', this.codec.sealed),
      tier: 'cool',
    });
    return hash;
  }

  async complete(runId: string, rootHash: FileTreeHash | null, fileCount = 1): Promise<string> {
    const facts = { rootHash, fileCount, originalSize: 10 };
    return (await this.service.runs.complete(this.name, runId, facts)).operationId;
  }

  async names(prefix: string): Promise<string[]> {
    return (await this.container.listPage(prefix)).blobs.map((blob) => blob.name);
  }

  async pendingRows(): Promise<number> {
    const { pending } = await this.newService().openRepositories.get(this.name);
    return (await pending.census()).rows;
  }

  async bodyOf(name: string): Promise<Buffer> {
    const opened = await this.container.openRead(name);
    return opened === undefined ? Buffer.alloc(0) : await collected(opened.body);
  }
}

export function file(name: string, contentHash: ContentHash): FileTreeEntry {
  return { kind: 'file', name, contentHash, createdTicks: 0n, modifiedTicks: 10_000_000n };
}

export function folder(name: string, fileTreeHash: FileTreeHash): FileTreeEntry {
  return { kind: 'directory', name, fileTreeHash };
}
