/** The single requests of the memory adapter: each passes the gate and is applied to the account at once. */

import type {
  BlobPage,
  BlobPermission,
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
} from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { BlobHead, BlobRequests, QueueRequests, TableRequests } from '../requests.ts';
import { BlobBody } from './blob-body.ts';
import type { BlobStore } from './blob-store.ts';
import type { RequestGate, StorageRequestKind } from './gate.ts';
import type { MemoryAccount } from './memory-account.ts';
import type { UrlSigner } from './signed-urls.ts';

/** Bodies come in pieces of this size, as from a socket, so that callers meet more than one. */
const READ_PIECE_BYTES = 64 * 1024;

/** What the requests of one account share. */
export interface MemoryParts {
  readonly account: MemoryAccount;
  readonly gate: RequestGate;
  readonly signer: UrlSigner;
}

export class MemoryBlobRequests implements BlobRequests {
  readonly name: string;
  readonly #parts: MemoryParts;
  readonly #deadline: Date | undefined;

  constructor(parts: MemoryParts, name: string, deadline?: Date) {
    this.#parts = parts;
    this.name = name;
    this.#deadline = deadline;
  }

  async createContainer(attemptId: string): Promise<void> {
    await this.#gated('container-create', '', () => {
      this.#refuseSigned();
      this.#parts.account.createContainer(this.name, attemptId);
    });
  }

  async headContainer(): Promise<string | undefined> {
    return await this.#request('container-head', '', (store) => {
      this.#refuseSigned();
      return store.attemptId;
    });
  }

  async head(name: string): Promise<BlobHead> {
    return await this.#request('blob-head', name, (store) => store.head(name));
  }

  async get(name: string, range: ByteRange | undefined): Promise<OpenedBlob> {
    const found = await this.#request('blob-read', name, (store) => store.get(name, range));
    return { properties: found.properties, body: copies(found.body, found.range) };
  }

  async put(name: string, body: Uint8Array, options: BlobWriteOptions): Promise<string> {
    const stored = BlobBody.copyOf(body);
    return await this.#request('blob-write', name, (store) => store.put(name, stored, options));
  }

  async delete(name: string, etag: string): Promise<void> {
    await this.#request('blob-delete', name, (store) => store.delete(name, etag));
  }

  async list(prefix: string, options: ListOptions): Promise<BlobPage> {
    return await this.#request('blob-list', prefix, (store) => store.list(prefix, options));
  }

  async stageBlock(name: string, blockId: string, body: Uint8Array): Promise<void> {
    const stored = BlobBody.copyOf(body);
    await this.#request('block-stage', name, (store) => store.stageBlock(name, blockId, stored));
  }

  async stageBlockFromUrl(name: string, blockId: string, sourceUrl: string, range: ByteRange): Promise<void> {
    await this.#request('block-stage-from-url', name, (store) =>
      store.stageBlock(name, blockId, this.#signedRange(sourceUrl, range)),
    );
  }

  async commitBlocks(name: string, blockIds: readonly string[], options: BlobWriteOptions): Promise<string> {
    return await this.#request('block-commit', name, (store) => store.commitBlocks(name, blockIds, options));
  }

  async committedBlockIds(name: string): Promise<readonly string[]> {
    return await this.#request('block-list', name, (store) => store.committedBlockIds(name));
  }

  async createAppend(name: string): Promise<string> {
    return await this.#request('append-create', name, (store) => store.createAppend(name, { absent: true }));
  }

  async append(name: string, bytes: Uint8Array, positionBytes: number, sizeBytesMax: number): Promise<string> {
    const body = BlobBody.copyOf(bytes);
    return await this.#request('append-write', name, (store) => store.append(name, body, positionBytes, sizeBytesMax));
  }

  async expiringAt(deadline: Date): Promise<BlobRequests> {
    return new MemoryBlobRequests(this.#parts, this.name, earlier(deadline, this.#deadline));
  }

  async signedUrl(name: string, permission: BlobPermission, expiresAt: Date): Promise<string> {
    return this.#parts.signer.sign(this.name, name, permission, earlier(expiresAt, this.#deadline));
  }

  /** No container signature allows requests on the container itself. */
  #refuseSigned(): void {
    if (this.#deadline !== undefined) {
      throw new StorageRefusal(403, 'AuthorizationPermissionMismatch');
    }
  }

  #signedRange(sourceUrl: string, range: ByteRange): BlobBody {
    const { account, signer } = this.#parts;
    const source = signer.verify(sourceUrl, account.now());
    if (!source.permissions.includes('r')) {
      throw new StorageRefusal(403, 'CannotVerifyCopySource');
    }
    const found = account.container(source.container).get(source.name, range);
    // The service does not clip: a range that is not there as a whole is refused.
    if (found.range.lengthBytes !== range.lengthBytes) {
      throw new StorageRefusal(416, 'InvalidRange');
    }
    return new BlobBody([...found.body.views(range.offsetBytes, range.lengthBytes, range.lengthBytes)]);
  }

  async #request<T>(kind: StorageRequestKind, name: string, apply: (store: BlobStore) => T): Promise<T> {
    return await this.#gated(kind, name, () => apply(this.#parts.account.container(this.name)));
  }

  async #gated<T>(kind: StorageRequestKind, name: string, apply: () => T): Promise<T> {
    return await this.#parts.gate.request({ kind, container: this.name, name, deadline: this.#deadline }, apply);
  }
}

export class MemoryTableRequests implements TableRequests {
  readonly name: string;
  readonly #parts: MemoryParts;

  constructor(parts: MemoryParts, name: string) {
    this.#parts = parts;
    this.name = name;
  }

  async createTable(): Promise<void> {
    await this.#request('table-create', '', () => this.#parts.account.createTable(this.name));
  }

  async get(partitionKey: string, rowKey: string): Promise<Row> {
    return await this.#request('row-read', `${partitionKey}/${rowKey}`, () => this.#table.get(partitionKey, rowKey));
  }

  async insert(partitionKey: string, rowKey: string, values: RowValues): Promise<string> {
    return await this.#request('row-insert', `${partitionKey}/${rowKey}`, () =>
      this.#table.insert(partitionKey, rowKey, values),
    );
  }

  async replace(partitionKey: string, rowKey: string, values: RowValues, etag: string): Promise<string> {
    return await this.#request('row-replace', `${partitionKey}/${rowKey}`, () =>
      this.#table.replace(partitionKey, rowKey, values, etag),
    );
  }

  async upsert(partitionKey: string, rowKey: string, values: RowValues): Promise<string> {
    return await this.#request('row-upsert', `${partitionKey}/${rowKey}`, () =>
      this.#table.upsert(partitionKey, rowKey, values),
    );
  }

  async delete(partitionKey: string, rowKey: string, etag: string): Promise<void> {
    await this.#request('row-delete', `${partitionKey}/${rowKey}`, () =>
      this.#table.delete(partitionKey, rowKey, etag),
    );
  }

  async query(query: RowQuery): Promise<RowPage> {
    const name = query.partition ?? query.partitionFrom ?? '';
    return await this.#request('row-query', name, () => this.#table.query(query));
  }

  async batch(partitionKey: string, operations: readonly RowOperation[]): Promise<void> {
    await this.#request('row-batch', partitionKey, () => this.#table.batch(partitionKey, operations));
  }

  get #table(): ReturnType<MemoryAccount['table']> {
    return this.#parts.account.table(this.name);
  }

  async #request<T>(kind: StorageRequestKind, name: string, apply: () => T): Promise<T> {
    return await this.#parts.gate.request({ kind, container: this.name, name }, apply);
  }
}

export class MemoryQueueRequests implements QueueRequests {
  readonly name: string;
  readonly #parts: MemoryParts;

  constructor(parts: MemoryParts, name: string) {
    this.#parts = parts;
    this.name = name;
  }

  async createQueue(): Promise<void> {
    await this.#request('queue-create', () => this.#parts.account.createQueue(this.name));
  }

  async send(text: string, delaySeconds: number): Promise<void> {
    await this.#request('queue-send', () => this.#parts.account.queue(this.name).send(text, delaySeconds));
  }

  async receive(max: number, invisibleSeconds: number): Promise<readonly ReceivedMessage[]> {
    return await this.#request('queue-receive', () =>
      this.#parts.account.queue(this.name).receive(max, invisibleSeconds),
    );
  }

  async delete(id: string, receipt: string): Promise<void> {
    await this.#request('queue-delete', () => this.#parts.account.queue(this.name).delete(id, receipt));
  }

  async #request<T>(kind: StorageRequestKind, apply: () => T): Promise<T> {
    return await this.#parts.gate.request({ kind, container: this.name, name: '' }, apply);
  }
}

/** Copies, so that a reader cannot change what is stored. */
async function* copies(body: BlobBody, range: ByteRange): AsyncGenerator<Uint8Array> {
  for (const view of body.views(range.offsetBytes, range.lengthBytes, READ_PIECE_BYTES)) {
    yield Uint8Array.from(view);
  }
}

function earlier(deadline: Date, other: Date | undefined): Date {
  return other !== undefined && other < deadline ? other : deadline;
}
