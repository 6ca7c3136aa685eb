/**
 * What is stored under a chunk's name, told from the blob alone. Everything an entry says comes from here, never from an
 * agent. Invariant: a blob without its sentinel (or a sidecar) is never taken for a chunk, and is removed only with the
 * ETag under which it was seen to be debris, and only once it is too old to be another writer's upload.
 */

import type { ChunkHash, ContentHash } from '../hashing/hashes.ts';
import { CHUNK_LOOKS_MAX, DEBRIS_AGE_MS } from '../limits.ts';
import { chunkBlobName, sidecarBlobName } from '../repository/blob-names.ts';
import { parseChunkMetadata } from '../repository/chunk-metadata.ts';
import type { AccessTier, BlobContainer, BlobProperties, Clock } from '../storage/ports.ts';
import { stillChanging } from './refusals.ts';
import { namingBlob } from './stored-bodies.ts';

/** Sizes are bytes; `chunkSize` is the stored size of the body. */
export type ChunkLook =
  | { readonly kind: 'large'; readonly originalSize: number; readonly chunkSize: number; readonly tier: AccessTier }
  | { readonly kind: 'tar'; readonly chunkSize: number; readonly tier: AccessTier }
  | { readonly kind: 'thin'; readonly parent: ChunkHash; readonly originalSize: number; readonly etag: string }
  /** Committed by a type of another version: to be left alone. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'absent' }
  /** A body without sentinel that may still become a chunk; look again after `retryAt`. */
  | { readonly kind: 'debris'; readonly retryAt: Date };

export class ChunkInspector {
  readonly #container: BlobContainer;
  readonly #clock: Clock;
  readonly #defaultTier: AccessTier;

  /** @param defaultTier what to say of a chunk whose storage names no tier */
  constructor(container: BlobContainer, clock: Clock, defaultTier: AccessTier) {
    this.#container = container;
    this.#clock = clock;
    this.#defaultTier = defaultTier;
  }

  /** Looks, and clears away what has been debris for long enough: the name is `absent` then. */
  async look(hash: ChunkHash | ContentHash): Promise<ChunkLook> {
    const name = chunkBlobName(hash);
    for (let looks = 0; looks < CHUNK_LOOKS_MAX; looks++) {
      const blob = await this.#container.head(name);
      if (blob === undefined) {
        return { kind: 'absent' };
      }
      const committed = (await this.#committed(blob, blob)) ?? (await this.#committedBySidecar(blob, hash));
      if (committed !== undefined) {
        return committed;
      }
      const retryAt = new Date(blob.lastModified.getTime() + DEBRIS_AGE_MS);
      if (this.#clock.now() < retryAt) {
        return { kind: 'debris', retryAt };
      }
      if ((await this.#container.delete(name, { etag: blob.etag })) !== 'changed') {
        return { kind: 'absent' };
      }
    }
    throw stillChanging(name);
  }

  /** Removes a thin stub that names no committed tar, if it is still the one that was looked at. */
  async removeDangling(contentHash: ContentHash, etag: string): Promise<void> {
    await this.#container.delete(chunkBlobName(contentHash), { etag });
  }

  /** A migrated chunk that could not be given metadata has it beside it. Such a body is old, and never debris. */
  async #committedBySidecar(blob: BlobProperties, hash: ChunkHash | ContentHash): Promise<ChunkLook | undefined> {
    const sidecar = await this.#container.head(sidecarBlobName(hash));
    if (sidecar === undefined) {
      return undefined;
    }
    return (await this.#committed(blob, sidecar)) ?? { kind: 'unknown' };
  }

  async #committed(blob: BlobProperties, described: BlobProperties): Promise<ChunkLook | undefined> {
    const metadata = await namingBlob(described.name, () =>
      Promise.resolve(parseChunkMetadata(described.metadata, blob.contentLengthBytes)),
    );
    if (metadata === 'uncommitted') {
      return undefined;
    }
    if (metadata === 'unknown') {
      return { kind: 'unknown' };
    }
    // The stored size is what is stored: the metadata of a chunk that was rewritten by hand may say otherwise.
    const stored = { chunkSize: blob.contentLengthBytes, tier: blob.tier ?? this.#defaultTier };
    switch (metadata.type) {
      case 'large':
        return { kind: 'large', originalSize: metadata.originalSize, ...stored };
      case 'tar':
        return { kind: 'tar', ...stored };
      case 'thin':
        return {
          kind: 'thin',
          parent: metadata.parentChunkHash,
          originalSize: metadata.originalSize,
          etag: blob.etag,
        };
    }
  }
}
