/**
 * What the product asks of storage. Small on purpose: each member is one request (or one page) of the real service, so
 * that request counts can be reasoned about. Two adapters implement these ports, memory and Azure, and one conformance
 * suite holds both to the same behaviour. Storage errors are translated in the adapters and nowhere else.
 *
 * Rules every adapter keeps:
 * - A condition that does not hold is an outcome, not an exception. 403 on a create-only grant, 409 and 412 on a
 *   conditional write are all `conflict`: the caller looks at what is there.
 * - A lost response is resolved inside the adapter: it reads back and answers `written` if what is there is what this
 *   very call wrote (same content and metadata; for rows, same values).
 * - Everything else that fails is an AriusError (`storage-failed`, `not-allowed`, …), after bounded retries.
 * - ETags are opaque and without surrounding quotes.
 */

export type AccessTier = 'hot' | 'cool' | 'cold' | 'archive';

export type Metadata = Readonly<Record<string, string>>;

export interface BlobProperties {
  readonly name: string;
  readonly etag: string;
  readonly contentLengthBytes: number;
  readonly lastModified: Date;
  readonly contentType: string | undefined;
  /** Undefined when not asked for (a listing without metadata). Keys are lower case. */
  readonly metadata: Metadata | undefined;
  readonly tier: AccessTier | undefined;
  /** `rehydrate-pending-to-hot` and the like; undefined when the blob is not being rehydrated. */
  readonly archiveStatus: string | undefined;
}

/** `absent`: create only. `etag`: replace exactly what was read. There is no unconditional write. */
export type WriteCondition = { readonly absent: true } | { readonly etag: string };

export type WriteResult = { readonly outcome: 'written'; readonly etag: string } | { readonly outcome: 'conflict' };

export type DeleteResult = 'deleted' | 'missing' | 'changed';

export interface BlobWriteOptions {
  readonly condition: WriteCondition;
  readonly contentType: string;
  readonly metadata?: Metadata;
  /** Undefined: the account's default tier. */
  readonly tier?: AccessTier;
}

export interface ByteRange {
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

export interface ReadBlob {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

export interface OpenedBlob {
  readonly properties: BlobProperties;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface BlobPage {
  readonly blobs: readonly BlobProperties[];
  /** Opaque; undefined on the last page. */
  readonly continuation: string | undefined;
}

export interface ListOptions {
  readonly continuation?: string;
  readonly includeMetadata?: boolean;
  readonly pageSize?: number;
}

/** What a signed URL may be used for. `create` cannot overwrite; `write` exists for staging names only. */
export type BlobPermission = 'create' | 'read' | 'write';

export interface BlobContainer {
  readonly name: string;
  /** True when this call created it. */
  createIfMissing(): Promise<boolean>;
  exists(): Promise<boolean>;
  /** Undefined when there is no such blob (or container). Works on archived blobs. */
  head(name: string): Promise<BlobProperties | undefined>;
  /** The whole body; undefined when missing. A body above `bytesMax` is refused before it is read. */
  read(name: string, bytesMax: number): Promise<ReadBlob | undefined>;
  /**
   * A stream over the body or a range of it, clipped at the end; undefined when missing; bad-request when the range
   * begins behind the end. The properties are of the whole blob. The body must be read, or left by `return`.
   */
  openRead(name: string, range?: ByteRange): Promise<OpenedBlob | undefined>;
  /** One Put Blob: body, metadata and tier together. */
  write(name: string, body: Uint8Array, options: BlobWriteOptions): Promise<WriteResult>;
  delete(name: string, condition: { readonly etag: string }): Promise<DeleteResult>;
  /** Names starting with the prefix, in order, one page (5,000 at most). */
  listPage(prefix: string, options?: ListOptions): Promise<BlobPage>;
  /**
   * Block ids are base64, of equal length for one blob, and unique to an attempt: two writers that stage the same id
   * overwrite each other, and a lost commit is recognised by its ids.
   */
  stageBlock(name: string, blockId: string, body: Uint8Array): Promise<void>;
  /** The service copies the range itself; `sourceUrl` carries its own signature, and the range is there as a whole. */
  stageBlockFromUrl(name: string, blockId: string, sourceUrl: string, range: ByteRange): Promise<void>;
  commitBlocks(name: string, blockIds: readonly string[], options: BlobWriteOptions): Promise<WriteResult>;
  /**
   * The same container, through a signature that the storage itself refuses after the deadline (for any request). It
   * reaches blobs and their listing; `createIfMissing` and `exists` are not allowed through it. The deadline counts in
   * whole seconds, rounded down.
   */
  expiringAt(deadline: Date): Promise<BlobContainer>;
  /** A signed URL for one blob. No request to storage but, in Azure, a cached user-delegation key. */
  signedUrl(name: string, permission: BlobPermission, expiresAt: Date): Promise<string>;
}

/** Append blobs: a position-conditional log. */
export interface AppendBlobs {
  createAppend(name: string): Promise<WriteResult>;
  /** `conflict` when the blob does not end at `positionBytes` or would grow above `sizeBytesMax`. */
  append(name: string, bytes: Uint8Array, positionBytes: number, sizeBytesMax: number): Promise<WriteResult>;
}

export type ColumnValue = string | number | bigint | boolean;
export type RowValues = Readonly<Record<string, ColumnValue>>;

export interface Row {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly etag: string;
  /** Strings, booleans, numbers (double or int32) and bigints (int64) come back as they were written. */
  readonly values: RowValues;
}

export interface RowPage {
  readonly rows: readonly Row[];
  readonly continuation: string | undefined;
}

/** Bounds are compared as ordinal strings; all are optional. */
export interface RowQuery {
  readonly partitionFrom?: string;
  /** Inclusive. */
  readonly partitionTo?: string;
  /** Shorthand for both bounds of the partition key. */
  readonly partition?: string;
  /** Row key ≥ this. */
  readonly rowFrom?: string;
  /** Row key > this. */
  readonly rowAfter?: string;
  /** Row key < this. */
  readonly rowBefore?: string;
  readonly pageSize?: number;
  readonly continuation?: string;
  /** Columns to return; the keys and the ETag always come. */
  readonly select?: readonly string[];
}

export type RowOperation =
  | { readonly kind: 'insert'; readonly rowKey: string; readonly values: RowValues }
  | { readonly kind: 'upsert'; readonly rowKey: string; readonly values: RowValues }
  | { readonly kind: 'replace'; readonly rowKey: string; readonly values: RowValues; readonly etag: string }
  | { readonly kind: 'delete'; readonly rowKey: string; readonly etag: string };

export type BatchResult =
  | { readonly outcome: 'written' }
  | { readonly outcome: 'conflict'; readonly failedIndex: number | undefined };

export interface Table {
  readonly name: string;
  createIfMissing(): Promise<void>;
  get(partitionKey: string, rowKey: string): Promise<Row | undefined>;
  insert(partitionKey: string, rowKey: string, values: RowValues): Promise<WriteResult>;
  /** Replaces all values, only if the row still has the ETag. */
  replace(partitionKey: string, rowKey: string, values: RowValues, etag: string): Promise<WriteResult>;
  /** Last writer wins. Returns the new ETag. */
  upsert(partitionKey: string, rowKey: string, values: RowValues): Promise<string>;
  delete(partitionKey: string, rowKey: string, etag: string): Promise<DeleteResult>;
  /** One page (1,000 rows at most), in key order. */
  queryPage(query: RowQuery): Promise<RowPage>;
  /** Up to 100 operations on one partition, all or nothing. `failedIndex`: the operation whose condition did not hold. */
  batch(partitionKey: string, operations: readonly RowOperation[]): Promise<BatchResult>;
}

export interface ReceivedMessage {
  readonly id: string;
  readonly text: string;
  readonly receipt: string;
  readonly dequeueCount: number;
}

export interface Queue {
  readonly name: string;
  createIfMissing(): Promise<void>;
  /** At least once: a message may arrive twice. */
  send(text: string, options?: { readonly delaySeconds?: number }): Promise<void>;
  receive(options: { readonly max: number; readonly invisibleSeconds: number }): Promise<readonly ReceivedMessage[]>;
  /** A message whose receipt is old, or that is gone, is left alone. */
  delete(message: Pick<ReceivedMessage, 'id' | 'receipt'>): Promise<void>;
}

/** One storage account (or its likeness in memory). */
export interface Storage {
  container(name: string): BlobContainer;
  appendBlobs(containerName: string): AppendBlobs;
  table(name: string): Table;
  queue(name: string): Queue;
  /** Containers by name, one page. */
  listContainersPage(
    prefix: string,
    continuation?: string,
  ): Promise<{ names: readonly string[]; continuation: string | undefined }>;
}

/** The time, from outside: the core has no clock of its own. */
export interface Clock {
  now(): Date;
}
