/**
 * Thin stubs: the empty blobs that say which tar holds a content. One conditional create each. A stub that is there is kept,
 * whatever committed tar it names, and then the entry names that tar too: the index says what a repair would find.
 */

import type { ChunkHash, ContentHash } from '../hashing/hashes.ts';
import { CHUNK_LOOKS_MAX } from '../limits.ts';
import { chunkBlobName, contentTypeOf } from '../repository/blob-names.ts';
import { formatChunkMetadata } from '../repository/chunk-metadata.ts';
import type { ShardEntry } from '../repository/shard-entry.ts';
import type { EntryFinder, UploadFinding } from './entry-finder.ts';
import type { OpenRepository } from './open-repository.ts';
import { stillChanging } from './refusals.ts';

export interface TarFacts {
  readonly tarHash: ChunkHash;
  /** Stored bytes of the tar. */
  readonly chunkSize: number;
  readonly tier: ShardEntry['tier'];
}

export class ThinStubs {
  readonly #repository: OpenRepository;
  readonly #finder: EntryFinder;
  readonly #tar: TarFacts;

  constructor(repository: OpenRepository, finder: EntryFinder, tar: TarFacts) {
    this.#repository = repository;
    this.#finder = finder;
    this.#tar = tar;
  }

  /**
   * @returns `committed` with the entry, `debris` when something young and uncommitted is in the way, `conflict` when a
   * chunk is that holds no file of this hash
   */
  async write(contentHash: ContentHash, originalSize: number): Promise<UploadFinding> {
    for (let looks = 0; looks < CHUNK_LOOKS_MAX; looks++) {
      if (await this.#create(contentHash, originalSize)) {
        return { outcome: 'committed', entry: this.#entry(contentHash, originalSize) };
      }
      const finding = await this.#finder.findForUpload(contentHash);
      if (finding.outcome !== 'absent') {
        return finding;
      }
    }
    throw stillChanging(chunkBlobName(contentHash));
  }

  async #create(contentHash: ContentHash, originalSize: number): Promise<boolean> {
    const { tarHash, chunkSize } = this.#tar;
    const result = await this.#repository.container.write(chunkBlobName(contentHash), new Uint8Array(), {
      condition: { absent: true },
      contentType: contentTypeOf('thin', this.#repository.codec.sealed),
      metadata: formatChunkMetadata({ type: 'thin', parentChunkHash: tarHash, originalSize, chunkSize }),
      // Stubs stay online, whatever tier their tar goes to: repair reads them, and they weigh nothing.
      tier: 'cool',
    });
    return result.outcome === 'written';
  }

  #entry(contentHash: ContentHash, originalSize: number): ShardEntry {
    const { tarHash, chunkSize, tier } = this.#tar;
    return { contentHash, chunkHash: tarHash, originalSize, chunkSize, tier };
  }
}
