/**
 * From a content hash to the entry that the stored chunks themselves prove. A thin chunk counts only when the tar it names
 * is committed, and is dangling only when nothing at all has that tar's name. Each tar is looked at once per finder, so a
 * finder lives for one request.
 */

import { AriusError } from '../errors.ts';
import type { ChunkHash, ContentHash } from '../hashing/hashes.ts';
import { chunkBlobName } from '../repository/blob-names.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { ChunkInspector, ChunkLook } from './chunk-inspector.ts';

export type Finding =
  | { readonly outcome: 'committed'; readonly entry: ShardEntry }
  | { readonly outcome: 'absent' }
  /** A body without sentinel under the name itself, or under that of the tar which a thin chunk there names. */
  | { readonly outcome: 'debris'; readonly retryAt: Date }
  /** A committed chunk that holds no file of this hash, or one this version cannot judge: to be left alone. */
  | { readonly outcome: 'conflict'; readonly detail: string }
  /** A thin chunk whose tar is not there. */
  | { readonly outcome: 'dangling'; readonly etag: string };

export type UploadFinding = Exclude<Finding, { readonly outcome: 'dangling' }>;

export class EntryFinder {
  readonly #chunks: ChunkInspector;
  readonly #tars = new Map<ChunkHash, Promise<ChunkLook>>();

  constructor(chunks: ChunkInspector) {
    this.#chunks = chunks;
  }

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
        return { outcome: 'conflict', detail: conflictDetail(contentHash, look.kind) };
    }
  }

  /**
   * As `find`, for a content that is about to be stored: a thin stub whose tar is not there is cleared out of the way.
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
    switch (tar.kind) {
      case 'tar': {
        const { chunkSize, tier } = tar;
        const entry = { contentHash, chunkHash: thin.parent, originalSize: thin.originalSize, chunkSize, tier };
        return { outcome: 'committed', entry };
      }
      case 'absent':
        return { outcome: 'dangling', etag: thin.etag };
      case 'debris':
        // Another writer may be about to commit the tar, which this stub then belongs to.
        return { outcome: 'debris', retryAt: tar.retryAt };
      case 'large':
      case 'thin':
      case 'unknown': {
        const detail = `${chunkBlobName(contentHash)} names a tar: ${conflictDetail(thin.parent, tar.kind)}`;
        return { outcome: 'conflict', detail };
      }
    }
  }
}

/** What stands where another chunk is wanted, as a sentence for the user. */
export function conflictDetail(hash: ChunkHash | ContentHash, found: ChunkLook['kind']): string {
  const what = found === 'unknown' ? 'a chunk of a kind this version does not know' : `a chunk of type "${found}"`;
  return `${chunkBlobName(hash)} holds ${what}, so the wanted chunk cannot be stored there.`;
}

/** For a request about one content, which fails as a whole. */
export function typeConflict(conflict: Finding & { readonly outcome: 'conflict' }): AriusError {
  return new AriusError(
    'chunk-type-conflict',
    conflict.detail,
    'Leave out the file that has this hash, or look at that chunk with the client that wrote it.',
  );
}
