/**
 * A storage that counts what is asked of it: one per port call, so retries inside an adapter do not show. Containers
 * reached through `expiringAt` count into the same sums.
 */

import type { AppendBlobs, BlobContainer, OpenedBlob, Queue, Storage, Table } from './ports.ts';

const REQUEST_CLASSES = [
  'blob-read',
  'blob-head',
  'blob-write',
  'blob-delete',
  'blob-list',
  'table-read',
  'table-write',
  'queue',
] as const;

export type RequestClass = (typeof REQUEST_CLASSES)[number];

export interface CountingStorage {
  readonly storage: Storage;
  /** A copy of the counts so far. */
  counts(): Record<RequestClass, number>;
  /** Bytes of blob bodies. */
  bytes(): { read: number; written: number };
}

class Counter {
  readonly counts = Object.fromEntries(REQUEST_CLASSES.map((name) => [name, 0])) as Record<RequestClass, number>;
  readBytes = 0;
  writtenBytes = 0;
  readonly #observe: (requestClass: RequestClass) => void;

  constructor(observe: (requestClass: RequestClass) => void) {
    this.#observe = observe;
  }

  add(requestClass: RequestClass): void {
    this.counts[requestClass] += 1;
    this.#observe(requestClass);
  }

  write(body: Uint8Array): void {
    this.add('blob-write');
    this.writtenBytes += body.byteLength;
  }
}

/** @param observe called for each request, where it is made: to count for whoever caused it */
export function countingStorage(
  inner: Storage,
  observe: (requestClass: RequestClass) => void = () => undefined,
): CountingStorage {
  const counter = new Counter(observe);
  return {
    storage: {
      container: (name) => countingContainer(inner.container(name), counter),
      appendBlobs: (containerName) => countingAppendBlobs(inner.appendBlobs(containerName), counter),
      table: (name) => countingTable(inner.table(name), counter),
      queue: (name) => countingQueue(inner.queue(name), counter),
      listContainersPage: (prefix, continuation) => {
        counter.add('blob-list');
        return inner.listContainersPage(prefix, continuation);
      },
    },
    counts: () => ({ ...counter.counts }),
    bytes: () => ({ read: counter.readBytes, written: counter.writtenBytes }),
  };
}

function countingContainer(inner: BlobContainer, counter: Counter): BlobContainer {
  return {
    name: inner.name,
    createIfMissing: counted(counter, 'blob-write', () => inner.createIfMissing()),
    exists: counted(counter, 'blob-head', () => inner.exists()),
    head: counted(counter, 'blob-head', (name) => inner.head(name)),
    read: counted(counter, 'blob-read', async (name, bytesMax) => {
      const found = await inner.read(name, bytesMax);
      counter.readBytes += found?.bytes.byteLength ?? 0;
      return found;
    }),
    openRead: counted(counter, 'blob-read', async (name, range) => {
      const opened = await inner.openRead(name, range);
      return opened === undefined ? undefined : countingBody(opened, counter);
    }),
    write: (name, body, options) => {
      counter.write(body);
      return inner.write(name, body, options);
    },
    delete: counted(counter, 'blob-delete', (name, condition) => inner.delete(name, condition)),
    listPage: counted(counter, 'blob-list', (prefix, options) => inner.listPage(prefix, options)),
    stageBlock: (name, blockId, body) => {
      counter.write(body);
      return inner.stageBlock(name, blockId, body);
    },
    stageBlockFromUrl: counted(counter, 'blob-write', (name, blockId, sourceUrl, range) =>
      inner.stageBlockFromUrl(name, blockId, sourceUrl, range),
    ),
    commitBlocks: counted(counter, 'blob-write', (name, blockIds, options) =>
      inner.commitBlocks(name, blockIds, options),
    ),
    expiringAt: async (deadline) => countingContainer(await inner.expiringAt(deadline), counter),
    signedUrl: (name, permission, expiresAt) => inner.signedUrl(name, permission, expiresAt),
  };
}

function countingAppendBlobs(inner: AppendBlobs, counter: Counter): AppendBlobs {
  return {
    createAppend: counted(counter, 'blob-write', (name) => inner.createAppend(name)),
    append: (name, bytes, positionBytes, sizeBytesMax) => {
      counter.write(bytes);
      return inner.append(name, bytes, positionBytes, sizeBytesMax);
    },
  };
}

function countingTable(inner: Table, counter: Counter): Table {
  return {
    name: inner.name,
    createIfMissing: counted(counter, 'table-write', () => inner.createIfMissing()),
    get: counted(counter, 'table-read', (partitionKey, rowKey) => inner.get(partitionKey, rowKey)),
    insert: counted(counter, 'table-write', (partitionKey, rowKey, values) =>
      inner.insert(partitionKey, rowKey, values),
    ),
    replace: counted(counter, 'table-write', (partitionKey, rowKey, values, etag) =>
      inner.replace(partitionKey, rowKey, values, etag),
    ),
    upsert: counted(counter, 'table-write', (partitionKey, rowKey, values) =>
      inner.upsert(partitionKey, rowKey, values),
    ),
    delete: counted(counter, 'table-write', (partitionKey, rowKey, etag) => inner.delete(partitionKey, rowKey, etag)),
    queryPage: counted(counter, 'table-read', (query) => inner.queryPage(query)),
    batch: counted(counter, 'table-write', (partitionKey, operations) => inner.batch(partitionKey, operations)),
  };
}

function countingQueue(inner: Queue, counter: Counter): Queue {
  return {
    name: inner.name,
    createIfMissing: counted(counter, 'queue', () => inner.createIfMissing()),
    send: counted(counter, 'queue', (text, options) => inner.send(text, options)),
    receive: counted(counter, 'queue', (options) => inner.receive(options)),
    delete: counted(counter, 'queue', (message) => inner.delete(message)),
  };
}

function counted<Arguments extends unknown[], Answer>(
  counter: Counter,
  requestClass: RequestClass,
  call: (...parameters: Arguments) => Promise<Answer>,
): (...parameters: Arguments) => Promise<Answer> {
  return (...parameters) => {
    counter.add(requestClass);
    return call(...parameters);
  };
}

/** Counts what is really read, and passes an early `return` on. */
function countingBody(opened: OpenedBlob, counter: Counter): OpenedBlob {
  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]() {
      const pieces = opened.body[Symbol.asyncIterator]();
      return {
        async next() {
          const piece = await pieces.next();
          counter.readBytes += piece.done === true ? 0 : piece.value.byteLength;
          return piece;
        },
        async return() {
          await pieces.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
  return { properties: opened.properties, body };
}
