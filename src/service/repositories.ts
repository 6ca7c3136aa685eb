/**
 * Creating a repository, taking over one that another client wrote, and saying which there are. Invariant: no state row
 * ever calls a container plain that holds sealed bodies, or the other way: what a container holds already is looked at
 * before its row is written.
 */

import { createBodyCodec } from '../codec/body-codec.ts';
import { PassphraseError } from '../codec/errors.ts';
import type { AdoptRepositoryRequest, CreateRepositoryRequest, RepositoryInfo } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';
import { SHARD_DECODED_BYTES_MAX } from '../limits.ts';
import {
  CHUNK_INDEX_PREFIX,
  CHUNKS_PREFIX,
  FILETREES_PREFIX,
  SNAPSHOTS_PREFIX,
  snapshotBlobName,
} from '../repository/blob-names.ts';
import { parseSnapshotName } from '../repository/snapshot.ts';
import type { BlobContainer, Clock, Storage } from '../storage/ports.ts';
import { requireRepositoryName } from './access.ts';
import { openProof, passphraseFor } from './open-repository.ts';
import type { PassphraseSource } from './passphrases.ts';
import { repositoryNotFound } from './refusals.ts';
import type { RepositoryKind, RepositoryState, RepositoryStates, UploadTier } from './repository-states.ts';
import { namingBlob, storedBytesMax } from './stored-bodies.ts';

const DEFAULT_TIER: UploadTier = 'cool';

/** What is sealed to prove a passphrase. Its text has no meaning; that it opens has. */
const PROOF_TEXT = 'This repository is sealed with the passphrase that opens this text.';

const REPOSITORY_PREFIXES = [SNAPSHOTS_PREFIX, CHUNK_INDEX_PREFIX, FILETREES_PREFIX, CHUNKS_PREFIX];

export class Repositories {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #states: RepositoryStates;
  readonly #passphrases: PassphraseSource;

  constructor(parts: { storage: Storage; clock: Clock; states: RepositoryStates; passphrases: PassphraseSource }) {
    this.#storage = parts.storage;
    this.#clock = parts.clock;
    this.#states = parts.states;
    this.#passphrases = parts.passphrases;
  }

  async create(request: CreateRepositoryRequest): Promise<RepositoryInfo> {
    requireRepositoryName(request.name);
    if ((await this.#states.find(request.name)) !== undefined) {
      throw repositoryExists(request.name);
    }
    const passphraseProof = await this.#sealedConstant(request.name, request.kind);
    const container = this.#storage.container(request.name);
    // The container first: a row without container would answer for a repository that cannot take a chunk.
    if (!(await container.createIfMissing())) {
      await requireEmpty(container);
    }
    return await this.#insert(request.name, {
      kind: request.kind,
      tier: request.tier ?? DEFAULT_TIER,
      epoch: null,
      passphraseProof,
    });
  }

  /** Kind and proof come from the newest snapshot or, before the first one, from another body of the container. */
  async adopt(name: string, request: AdoptRepositoryRequest): Promise<RepositoryInfo> {
    requireRepositoryName(name);
    const known = await this.#states.find(name);
    if (known !== undefined) {
      return infoOf(known);
    }
    const container = this.#storage.container(name);
    if (!(await container.exists())) {
      throw repositoryNotFound(name);
    }
    const epoch = await newestSnapshotName(container);
    const evidence = await findEvidence(container, epoch);
    const kind = await kindOf(evidence);
    const codec = createBodyCodec(passphraseFor(name, kind, this.#passphrases));
    if (kind === 'sealed') {
      await openProof(name, codec, evidence.body);
    }
    const proof = epoch === null ? await this.#sealedConstant(name, kind) : base64If(kind, evidence.body);
    return await this.#insert(name, { kind, tier: request.tier ?? DEFAULT_TIER, epoch, passphraseProof: proof });
  }

  async get(name: string): Promise<RepositoryInfo> {
    return infoOf(await this.#states.get(name));
  }

  async list(): Promise<{ repositories: RepositoryInfo[] }> {
    return { repositories: (await this.#states.list()).map(infoOf) };
  }

  async #sealedConstant(name: string, kind: RepositoryKind): Promise<string | null> {
    const codec = createBodyCodec(passphraseFor(name, kind, this.#passphrases));
    return base64If(kind, await codec.encode(new TextEncoder().encode(PROOF_TEXT)));
  }

  async #insert(
    name: string,
    found: Pick<RepositoryState, 'kind' | 'tier' | 'epoch' | 'passphraseProof'>,
  ): Promise<RepositoryInfo> {
    const state: RepositoryState = { ...found, name, createdAt: this.#clock.now(), layoutVersion: 0 };
    if ((await this.#states.insert(state)) === 'exists') {
      throw repositoryExists(name);
    }
    return infoOf(state);
  }
}

interface Evidence {
  readonly name: string;
  readonly body: Uint8Array;
}

async function newestSnapshotName(container: BlobContainer): Promise<string | null> {
  let newest: string | null = null;
  let continuation: string | undefined;
  do {
    const page = await container.listPage(SNAPSHOTS_PREFIX, continuation === undefined ? {} : { continuation });
    const leaves = page.blobs.map((blob) => blob.name.slice(SNAPSHOTS_PREFIX.length));
    newest = leaves.findLast((leaf) => parseSnapshotName(leaf) !== undefined) ?? newest;
    continuation = page.continuation;
  } while (continuation !== undefined);
  return newest;
}

/** A body that shows whether the container is sealed, and whose passphrase it is. */
async function findEvidence(container: BlobContainer, epoch: string | null): Promise<Evidence> {
  const names = epoch === null ? await firstNames(container) : [snapshotBlobName(epoch)];
  for (const name of names) {
    const blob = await container.read(name, storedBytesMax(SHARD_DECODED_BYTES_MAX));
    if (blob !== undefined && blob.bytes.length > 0) {
      return { name, body: blob.bytes };
    }
  }
  throw new AriusError(
    'bad-request',
    `The container "${container.name}" holds neither a snapshot nor a shard nor a filetree.`,
    'Create the repository if the container is empty; otherwise it is not a repository.',
  );
}

async function firstNames(container: BlobContainer): Promise<string[]> {
  const pages = await Promise.all(
    [CHUNK_INDEX_PREFIX, FILETREES_PREFIX].map(async (prefix) => await container.listPage(prefix, { pageSize: 1 })),
  );
  return pages.flatMap((page) => page.blobs.map((blob) => blob.name));
}

/** Read as if plain: a sealed body says that it needs a passphrase. */
async function kindOf(evidence: Evidence): Promise<RepositoryKind> {
  return await namingBlob(evidence.name, async () => {
    try {
      await createBodyCodec(undefined).decode(evidence.body, SHARD_DECODED_BYTES_MAX);
      return 'plain';
    } catch (error) {
      if (error instanceof PassphraseError && error.reason === 'needed') {
        return 'sealed';
      }
      throw error;
    }
  });
}

/** @throws AriusError `repository-exists` when the container holds something of a repository */
async function requireEmpty(container: BlobContainer): Promise<void> {
  for (const prefix of REPOSITORY_PREFIXES) {
    if ((await container.listPage(prefix, { pageSize: 1 })).blobs.length > 0) {
      throw new AriusError(
        'repository-exists',
        `The container "${container.name}" holds a repository that this service does not keep yet.`,
        'Adopt it instead of creating it.',
      );
    }
  }
}

function repositoryExists(name: string): AriusError {
  return new AriusError(
    'repository-exists',
    `The repository "${name}" exists already.`,
    'Use it, or choose another name.',
  );
}

function base64If(kind: RepositoryKind, body: Uint8Array): string | null {
  return kind === 'sealed' ? Buffer.from(body).toString('base64') : null;
}

function infoOf(state: RepositoryState): RepositoryInfo {
  return {
    name: state.name,
    kind: state.kind,
    tier: state.tier,
    createdAt: state.createdAt.toISOString(),
    epoch: state.epoch,
    passphraseProof: state.passphraseProof,
  };
}
