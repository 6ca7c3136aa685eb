/**
 * What an adapter implements: each member is exactly one request to storage, made once, without retries. It throws
 * StorageRefusal or StorageUnanswered (refusal.ts) and nothing else on purpose. src/storage/resolved builds the ports
 * on top: retries, read-back of lost responses, outcomes. So both adapters share every decision.
 */

import type {
  BlobPage,
  BlobPermission,
  BlobProperties,
  BlobWriteOptions,
  ByteRange,
  ListOptions,
  OpenedBlob,
  ReceivedMessage,
  Row,
  RowOperation,
  RowPage,
  RowQuery,
  RowValues,
} from './ports.ts';

/** A HEAD's answer: the properties, and what is needed to recognise our own write. */
export interface BlobHead {
  readonly properties: BlobProperties;
  /** Base64; undefined for a blob that was committed from blocks without one. */
  contentMd5(): string | undefined;
}

export interface BlobRequests {
  readonly name: string;
  /** `attemptId` is kept with the container, so that a lost response can be told from another's creation. */
  createContainer(attemptId: string): Promise<void>;
  /** The attempt id the container was created with; undefined when it was created by other means. */
  headContainer(): Promise<string | undefined>;
  head(name: string): Promise<BlobHead>;
  get(name: string, range: ByteRange | undefined): Promise<OpenedBlob>;
  put(name: string, body: Uint8Array, options: BlobWriteOptions): Promise<string>;
  delete(name: string, etag: string): Promise<void>;
  list(prefix: string, options: ListOptions): Promise<BlobPage>;
  stageBlock(name: string, blockId: string, body: Uint8Array): Promise<void>;
  stageBlockFromUrl(name: string, blockId: string, sourceUrl: string, range: ByteRange): Promise<void>;
  commitBlocks(name: string, blockIds: readonly string[], options: BlobWriteOptions): Promise<string>;
  committedBlockIds(name: string): Promise<readonly string[]>;
  createAppend(name: string): Promise<string>;
  append(name: string, bytes: Uint8Array, positionBytes: number, sizeBytesMax: number): Promise<string>;
  expiringAt(deadline: Date): Promise<BlobRequests>;
  signedUrl(name: string, permission: BlobPermission, expiresAt: Date): Promise<string>;
}

export interface TableRequests {
  readonly name: string;
  /** No error when the table exists. */
  createTable(): Promise<void>;
  get(partitionKey: string, rowKey: string): Promise<Row>;
  insert(partitionKey: string, rowKey: string, values: RowValues): Promise<string>;
  replace(partitionKey: string, rowKey: string, values: RowValues, etag: string): Promise<string>;
  upsert(partitionKey: string, rowKey: string, values: RowValues): Promise<string>;
  delete(partitionKey: string, rowKey: string, etag: string): Promise<void>;
  query(query: RowQuery): Promise<RowPage>;
  /** A refusal carries `failedIndex` when the service says which operation it was. */
  batch(partitionKey: string, operations: readonly RowOperation[]): Promise<void>;
}

export interface QueueRequests {
  readonly name: string;
  /** No error when the queue exists. */
  createQueue(): Promise<void>;
  send(text: string, delaySeconds: number): Promise<void>;
  receive(max: number, invisibleSeconds: number): Promise<readonly ReceivedMessage[]>;
  delete(id: string, receipt: string): Promise<void>;
}
