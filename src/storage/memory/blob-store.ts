/**
 * The blobs of one container, with the semantics that Azure documents: conditions, tiers, blocks, append positions.
 * Every method is one request applied at once, and refuses as the service does (StorageRefusal with status and code).
 */

import { LIST_PAGE_BLOBS_MAX } from '../../limits.ts';
import type {
  AccessTier,
  BlobPage,
  BlobProperties,
  ByteRange,
  ListOptions,
  Metadata,
  WriteCondition,
} from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { BlobHead } from '../requests.ts';
import { BlobBody } from './blob-body.ts';
import { SortedKeys } from './sorted-keys.ts';

interface Block {
  readonly id: string;
  readonly body: BlobBody;
}

interface StoredBlob {
  readonly type: 'block' | 'append';
  readonly etag: string;
  readonly lastModified: Date;
  readonly contentType: string;
  readonly metadata: Metadata;
  readonly tier: AccessTier | undefined;
  readonly body: BlobBody;
  /** Empty for a blob that was put in one request. */
  readonly blocks: readonly Block[];
}

export interface StoredBlobOptions {
  /** Undefined: an unconditional write, which the ports do not have but plain HTTP does. */
  readonly condition: WriteCondition | undefined;
  readonly contentType: string;
  readonly metadata?: Metadata | undefined;
  readonly tier?: AccessTier | undefined;
}

/** What a store needs from its account. */
export interface StoreContext {
  now(): Date;
  /** Unique in the account, so never given twice for one name. */
  nextEtag(): string;
}

export class BlobStore {
  readonly attemptId: string | undefined;
  readonly #context: StoreContext;
  readonly #blobs = new Map<string, StoredBlob>();
  readonly #names = new SortedKeys();
  readonly #uncommitted = new Map<string, Map<string, BlobBody>>();

  constructor(context: StoreContext, attemptId: string | undefined) {
    this.#context = context;
    this.attemptId = attemptId;
  }

  head(name: string): BlobHead {
    const blob = this.#existing(name);
    return {
      properties: properties(name, blob, true),
      contentMd5: () => (blob.type === 'block' && blob.blocks.length === 0 ? blob.body.md5 : undefined),
    };
  }

  /** The properties are of the whole blob, the body is of the range. */
  get(name: string, range: ByteRange | undefined): { properties: BlobProperties; body: BlobBody; range: ByteRange } {
    const blob = this.#existing(name);
    if (blob.tier === 'archive') {
      throw new StorageRefusal(409, 'BlobArchived');
    }
    const total = blob.body.lengthBytes;
    if (range !== undefined && range.offsetBytes >= total) {
      throw new StorageRefusal(416, 'InvalidRange');
    }
    const offsetBytes = range?.offsetBytes ?? 0;
    const lengthBytes = Math.min(range?.lengthBytes ?? total, total - offsetBytes);
    return { properties: properties(name, blob, true), body: blob.body, range: { offsetBytes, lengthBytes } };
  }

  put(name: string, body: BlobBody, options: StoredBlobOptions): string {
    this.#checkWritable(name, options.condition);
    this.#uncommitted.delete(name);
    return this.#store(name, 'block', body, [], options);
  }

  delete(name: string, etag: string | undefined): void {
    const blob = this.#existing(name);
    if (etag !== undefined && blob.etag !== etag) {
      throw new StorageRefusal(412, 'ConditionNotMet');
    }
    this.#blobs.delete(name);
    this.#names.delete(name);
  }

  list(prefix: string, options: ListOptions): BlobPage {
    const pageSize = Math.min(options.pageSize ?? LIST_PAGE_BLOBS_MAX, LIST_PAGE_BLOBS_MAX);
    const blobs: BlobProperties[] = [];
    for (const name of this.#names.from(options.continuation === undefined ? prefix : nameOf(options.continuation))) {
      if (!name.startsWith(prefix)) {
        break;
      }
      if (blobs.length === pageSize) {
        return { blobs, continuation: continuationAt(name) };
      }
      blobs.push(properties(name, this.#existing(name), options.includeMetadata ?? false));
    }
    return { blobs, continuation: undefined };
  }

  stageBlock(name: string, blockId: string, body: BlobBody): void {
    const staged = this.#uncommitted.get(name) ?? new Map<string, BlobBody>();
    const other = staged.keys().next();
    if (other.done !== true && other.value.length !== blockId.length) {
      throw new StorageRefusal(400, 'InvalidBlobOrBlock');
    }
    staged.set(blockId, body);
    this.#uncommitted.set(name, staged);
  }

  commitBlocks(name: string, blockIds: readonly string[], options: StoredBlobOptions): string {
    this.#checkWritable(name, options.condition);
    const staged = this.#uncommitted.get(name);
    const committed = new Map(this.#blobs.get(name)?.blocks.map((block) => [block.id, block.body]));
    const blocks = blockIds.map((id): Block => {
      const body = staged?.get(id) ?? committed.get(id);
      if (body === undefined) {
        throw new StorageRefusal(400, 'InvalidBlockList');
      }
      return { id, body };
    });
    this.#uncommitted.delete(name);
    return this.#store(name, 'block', BlobBody.joined(blocks.map((block) => block.body)), blocks, options);
  }

  committedBlockIds(name: string): readonly string[] {
    return this.#existing(name).blocks.map((block) => block.id);
  }

  createAppend(name: string, condition: WriteCondition | undefined): string {
    this.#checkWritable(name, condition);
    return this.#store(name, 'append', new BlobBody([]), [], { condition, contentType: 'application/octet-stream' });
  }

  append(name: string, body: BlobBody, positionBytes: number | undefined, sizeBytesMax: number | undefined): string {
    const blob = this.#existing(name);
    if (blob.type !== 'append') {
      throw new StorageRefusal(409, 'InvalidBlobType');
    }
    if (positionBytes !== undefined && blob.body.lengthBytes !== positionBytes) {
      throw new StorageRefusal(412, 'AppendPositionConditionNotMet');
    }
    if (sizeBytesMax !== undefined && blob.body.lengthBytes + body.lengthBytes > sizeBytesMax) {
      throw new StorageRefusal(412, 'MaxBlobSizeConditionNotMet');
    }
    return this.#store(name, 'append', BlobBody.joined([blob.body, body]), [], { ...blob, condition: undefined });
  }

  #existing(name: string): StoredBlob {
    const blob = this.#blobs.get(name);
    if (blob === undefined) {
      throw new StorageRefusal(404, 'BlobNotFound');
    }
    return blob;
  }

  #checkWritable(name: string, condition: WriteCondition | undefined): void {
    const blob = this.#blobs.get(name);
    if (condition !== undefined && 'absent' in condition && blob !== undefined) {
      throw new StorageRefusal(409, 'BlobAlreadyExists');
    }
    if (condition !== undefined && 'etag' in condition && blob?.etag !== condition.etag) {
      throw new StorageRefusal(412, 'ConditionNotMet');
    }
    if (blob?.tier === 'archive') {
      throw new StorageRefusal(409, 'BlobArchived');
    }
  }

  #store(
    name: string,
    type: StoredBlob['type'],
    body: BlobBody,
    blocks: readonly Block[],
    options: StoredBlobOptions,
  ): string {
    if (!this.#blobs.has(name)) {
      this.#names.add(name);
    }
    const etag = this.#context.nextEtag();
    this.#blobs.set(name, {
      type,
      etag,
      lastModified: this.#context.now(),
      contentType: options.contentType,
      metadata: { ...options.metadata },
      tier: type === 'append' ? undefined : (options.tier ?? 'hot'),
      body,
      blocks,
    });
    return etag;
  }
}

function properties(name: string, blob: StoredBlob, includeMetadata: boolean): BlobProperties {
  return {
    name,
    etag: blob.etag,
    contentLengthBytes: blob.body.lengthBytes,
    lastModified: blob.lastModified,
    contentType: blob.contentType,
    metadata: includeMetadata ? blob.metadata : undefined,
    tier: blob.tier,
    archiveStatus: undefined,
  };
}

/** Encoded, so that nobody comes to rely on what it says. */
function continuationAt(name: string): string {
  return Buffer.from(name, 'utf8').toString('base64url');
}

function nameOf(continuation: string): string {
  return Buffer.from(continuation, 'base64url').toString('utf8');
}
