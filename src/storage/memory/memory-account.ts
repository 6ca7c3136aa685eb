/** The whole state of an account in memory: containers, tables and queues by name. */

import type { Clock } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import { BlobStore, type StoreContext } from './blob-store.ts';
import { QueueStore } from './queue-store.ts';
import { compareOrdinal, SortedKeys } from './sorted-keys.ts';
import { TableStore } from './table-store.ts';

export class MemoryAccount implements StoreContext {
  readonly #clock: Clock;
  readonly #containers = new Map<string, BlobStore>();
  readonly #containerNames = new SortedKeys();
  readonly #tables = new Map<string, TableStore>();
  readonly #queues = new Map<string, QueueStore>();
  #etagCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): Date {
    return this.#clock.now();
  }

  nextEtag(): string {
    this.#etagCount += 1;
    return `0x${this.#etagCount.toString(16).toUpperCase().padStart(15, '0')}`;
  }

  createContainer(name: string, attemptId: string | undefined): void {
    if (this.#containers.has(name)) {
      throw new StorageRefusal(409, 'ContainerAlreadyExists');
    }
    this.#containers.set(name, new BlobStore(this, attemptId));
    this.#containerNames.add(name);
  }

  container(name: string): BlobStore {
    return found(this.#containers.get(name), 'ContainerNotFound');
  }

  deleteContainer(name: string): void {
    this.container(name);
    this.#containers.delete(name);
    this.#containerNames.delete(name);
  }

  listContainers(
    prefix: string,
    continuation: string | undefined,
    pageSize: number,
  ): { names: readonly string[]; continuation: string | undefined } {
    const names: string[] = [];
    for (const name of this.#containerNames.from(continuation ?? prefix)) {
      if (!name.startsWith(prefix)) {
        break;
      }
      if (names.length === pageSize) {
        return { names, continuation: name };
      }
      names.push(name);
    }
    return { names, continuation: undefined };
  }

  /** False when the table exists already. */
  createTable(name: string): boolean {
    if (this.#tables.has(name)) {
      return false;
    }
    this.#tables.set(name, new TableStore(this));
    return true;
  }

  table(name: string): TableStore {
    return found(this.#tables.get(name), 'TableNotFound');
  }

  deleteTable(name: string): void {
    this.table(name);
    this.#tables.delete(name);
  }

  tableNames(): readonly string[] {
    return [...this.#tables.keys()].sort(compareOrdinal);
  }

  /** False when the queue exists already. */
  createQueue(name: string): boolean {
    if (this.#queues.has(name)) {
      return false;
    }
    this.#queues.set(name, new QueueStore(this));
    return true;
  }

  queue(name: string): QueueStore {
    return found(this.#queues.get(name), 'QueueNotFound');
  }

  deleteQueue(name: string): void {
    this.queue(name);
    this.#queues.delete(name);
  }

  queueNames(): readonly string[] {
    return [...this.#queues.keys()].sort(compareOrdinal);
  }
}

function found<T>(store: T | undefined, code: string): T {
  if (store === undefined) {
    throw new StorageRefusal(404, code);
  }
  return store;
}
