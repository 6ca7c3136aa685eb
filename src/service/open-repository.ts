/**
 * A repository in use by this instance: its kind, its passphrase (proven once, here), and the parts that work on it. The
 * kind never changes, so an open repository stays open; everything that does change is asked of storage by the parts.
 */

import { LRUCache } from 'lru-cache';
import { ChunkIndex } from '../chunk-index/chunk-index.ts';
import { type BodyCodec, createBodyCodec } from '../codec/body-codec.ts';
import { BodyCorruptError } from '../codec/errors.ts';
import { AriusError } from '../errors.ts';
import { Hasher } from '../hashing/hasher.ts';
import type { Passphrase } from '../hashing/passphrase.ts';
import { REPOSITORIES_OPEN_MAX, SHARD_DECODED_BYTES_MAX } from '../limits.ts';
import { PendingEntries } from '../pending/pending-entries.ts';
import type { BlobContainer, Clock, Storage } from '../storage/ports.ts';
import { ChunkInspector } from './chunk-inspector.ts';
import { type PassphraseSource, passphraseSettingOf } from './passphrases.ts';
import type { RepositoryKind, RepositoryState, RepositoryStates, UploadTier } from './repository-states.ts';
import { SnapshotCatalog } from './snapshot-catalog.ts';

export interface OpenRepository {
  readonly name: string;
  readonly kind: RepositoryKind;
  /** Where chunks go when a run does not say. */
  readonly tier: UploadTier;
  readonly container: BlobContainer;
  readonly codec: BodyCodec;
  readonly hasher: Hasher;
  readonly pending: PendingEntries;
  readonly index: ChunkIndex;
  readonly chunks: ChunkInspector;
  readonly snapshots: SnapshotCatalog;
}

export interface RepositoryParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly states: RepositoryStates;
  readonly passphrases: PassphraseSource;
  readonly maxShardEntryCount: number;
}

export const STAGING_CONTAINER = 'arius-staging';
export const PENDING_TABLE = 'pending';

export class OpenRepositories {
  readonly #parts: RepositoryParts;
  readonly #open = new LRUCache<string, Promise<OpenRepository>>({ max: REPOSITORIES_OPEN_MAX });

  constructor(parts: RepositoryParts) {
    this.#parts = parts;
  }

  /** @throws AriusError `repository-not-found`, `passphrase-missing-in-service`, `passphrase-wrong` */
  async get(name: string): Promise<OpenRepository> {
    const known = this.#open.get(name);
    if (known !== undefined) {
      return await known;
    }
    const opening = this.#openByState(name);
    this.#open.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      // A failure is not kept: the passphrase may be there, or the storage answer, the next time.
      this.#open.delete(name);
      throw error;
    }
  }

  async #openByState(name: string): Promise<OpenRepository> {
    const state = await this.#parts.states.get(name);
    const passphrase = passphraseFor(name, state.kind, this.#parts.passphrases);
    await provePassphrase(state, createBodyCodec(passphrase));
    return openRepository(this.#parts, state, passphrase);
  }
}

function openRepository(
  { storage, clock, states, maxShardEntryCount }: RepositoryParts,
  { name, kind, tier }: RepositoryState,
  passphrase: Passphrase | undefined,
): OpenRepository {
  const container = storage.container(name);
  const codec = createBodyCodec(passphrase);
  const pending = new PendingEntries({ table: storage.table(PENDING_TABLE), repository: name, clock });
  const index = new ChunkIndex({
    repository: name,
    container,
    staging: storage.container(STAGING_CONTAINER),
    pending,
    versions: { read: async () => await states.get(name) },
    codec,
    clock,
    random: Math.random,
    maxShardEntryCount,
  });
  const chunks = new ChunkInspector(container, clock, tier);
  const snapshots = new SnapshotCatalog(container, codec);
  return { name, kind, tier, container, codec, hasher: new Hasher(passphrase), pending, index, chunks, snapshots };
}

/** @throws AriusError `passphrase-missing-in-service` */
export function passphraseFor(
  name: string,
  kind: RepositoryKind,
  passphrases: PassphraseSource,
): Passphrase | undefined {
  if (kind === 'plain') {
    return undefined;
  }
  const passphrase = passphrases.passphraseOf(name);
  if (passphrase === undefined) {
    throw new AriusError(
      'passphrase-missing-in-service',
      `The repository "${name}" is sealed, and this service has no passphrase for it.`,
      `Start \`serve\` with --repository ${name} and --passphrase-file; in Azure, set the app setting ${passphraseSettingOf(name)}.`,
    );
  }
  return passphrase;
}

async function provePassphrase(state: RepositoryState, codec: BodyCodec): Promise<void> {
  if (state.passphraseProof === null) {
    return;
  }
  await openProof(state.name, codec, Buffer.from(state.passphraseProof, 'base64'));
}

/** @throws AriusError `passphrase-wrong` when the body is not opened by the service's passphrase */
export async function openProof(name: string, codec: BodyCodec, proof: Uint8Array): Promise<Uint8Array> {
  try {
    return await codec.decode(proof, SHARD_DECODED_BYTES_MAX);
  } catch (error) {
    if (error instanceof BodyCorruptError) {
      throw new AriusError(
        'passphrase-wrong',
        `The passphrase of this service does not open the repository "${name}".`,
        `Correct the app setting ${passphraseSettingOf(name)}.`,
        { cause: error },
      );
    }
    throw error;
  }
}
