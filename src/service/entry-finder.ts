/**
 * From a content hash to the entry that the stored chunks themselves prove. A thin chunk counts only when the tar it names
 * is committed; each tar is looked at once per finder, so a finder lives for one request.
 */

import { AriusError } from '../errors.ts';
import type { ChunkHash, ContentHash } from '../hashing/hashes.ts';
import { chunkBlobName } from '../repository/blob-names.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { ChunkInspector, ChunkLook } from './chunk-inspector.ts';

export type Finding =
  | { readonly outcome: 'committed'; readonly entry: ShardEntry }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'debris'; readonly retryAt: Date }
  /** A thin chunk whose tar is not committed. */
  | { readonly outcome: 'dangling'; readonly etag: string };

export type UploadFinding = Exclude<Finding, { readonly outcome: 'dangling' }>;

export class EntryFinder {
  readonly #chunks: ChunkInspector;
  readonly #tars = new Map<ChunkHash, Promise<ChunkLook>>();

  constructor(chunks: ChunkInspector) {
    this.#chunks = chunks;
  }

  /** @throws AriusError `chunk-type-conflict` when the name is taken by a chunk that holds no file of this hash */
  async find(contentHash: ContentHash): Promise<Finding> {
    const look = await this.#chunks.look(contentHash);
    switch (look.kind) {
      case 'absent':
        return { outcome: 'absent' };
      case 'debris':
        return { outcome: 'debris', retryAt: look.retryAt };
      case 'large': {
        const { originalSize, chunkSize, tier } = look;
        const chunkHash = contentHash as string as ChunkHash;
        return { outcome: 'committed', entry: { contentHash, chunkHash, originalSize, chunkSize, tier } };
      }
      case 'thin':
        return await this.#findInTar(contentHash, look);
      case 'tar':
      case 'unknown':
        throw typeConflict(contentHash, look.kind);
    }
  }

  /**
   * As `find`, for a content that is about to be stored: a thin stub that names no committed tar is cleared out of the way.
   * Nothing can be read through it, and a repair would fail on it.
   */
  async findForUpload(contentHash: ContentHash): Promise<UploadFinding> {
    const finding = await this.find(contentHash);
    if (finding.outcome !== 'dangling') {
      return finding;
    }
    await this.#chunks.removeDangling(contentHash, finding.etag);
    return { outcome: 'absent' };
  }

  /** What is stored under the name of a tar; asked of storage once. */
  async lookAtTar(tarHash: ChunkHash): Promise<ChunkLook> {
    const known = this.#tars.get(tarHash);
    if (known !== undefined) {
      return await known;
    }
    const look = this.#chunks.look(tarHash);
    this.#tars.set(tarHash, look);
    return await look;
  }

  async #findInTar(contentHash: ContentHash, thin: ChunkLook & { kind: 'thin' }): Promise<Finding> {
    const tar = await this.lookAtTar(thin.parent);
    if (tar.kind !== 'tar') {
      return { outcome: 'dangling', etag: thin.etag };
    }
    const { chunkSize, tier } = tar;
    const entry = { contentHash, chunkHash: thin.parent, originalSize: thin.originalSize, chunkSize, tier };
    return { outcome: 'committed', entry };
  }
}

export function typeConflict(hash: ChunkHash | ContentHash, found: ChunkLook['kind']): AriusError {
  const what = found === 'unknown' ? 'a chunk of a kind this version does not know' : `a chunk of type "${found}"`;
  return new AriusError(
    'chunk-type-conflict',
    `${chunkBlobName(hash)} holds ${what}, so the wanted chunk cannot be stored there.`,
    'Leave out the file that has this hash, or look at that chunk with the client that wrote it.',
  );
}
