/**
 * One table: rows in (partition key, row key) order, ordinal. Every method is one request applied at once; a batch
 * applies all of its operations or none.
 */

import { TABLE_PAGE_ROWS_MAX } from '../../limits.ts';
import type { Row, RowOperation, RowPage, RowQuery, RowValues } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { StoreContext } from './blob-store.ts';
import { SortedKeys } from './sorted-keys.ts';

interface Partition {
  readonly rows: Map<string, Row>;
  readonly rowKeys: SortedKeys;
}

export class TableStore {
  readonly #context: Pick<StoreContext, 'nextEtag'>;
  readonly #partitions = new Map<string, Partition>();
  readonly #partitionKeys = new SortedKeys();

  constructor(context: Pick<StoreContext, 'nextEtag'>) {
    this.#context = context;
  }

  get(partitionKey: string, rowKey: string): Row {
    const row = this.#partitions.get(partitionKey)?.rows.get(rowKey);
    if (row === undefined) {
      throw new StorageRefusal(404, 'ResourceNotFound');
    }
    return row;
  }

  insert(partitionKey: string, rowKey: string, values: RowValues): string {
    this.#check(partitionKey, { kind: 'insert', rowKey, values });
    return this.#store(partitionKey, rowKey, values);
  }

  /** Without an ETag: whatever is there, as plain HTTP can ask. */
  replace(partitionKey: string, rowKey: string, values: RowValues, etag: string | undefined): string {
    this.#checkEtag(partitionKey, rowKey, etag);
    return this.#store(partitionKey, rowKey, values);
  }

  upsert(partitionKey: string, rowKey: string, values: RowValues): string {
    return this.#store(partitionKey, rowKey, values);
  }

  delete(partitionKey: string, rowKey: string, etag: string | undefined): void {
    this.#checkEtag(partitionKey, rowKey, etag);
    const partition = this.#partition(partitionKey);
    partition.rows.delete(rowKey);
    partition.rowKeys.delete(rowKey);
    if (partition.rows.size === 0) {
      this.#partitions.delete(partitionKey);
      this.#partitionKeys.delete(partitionKey);
    }
  }

  batch(partitionKey: string, operations: readonly RowOperation[]): void {
    // Distinct rows, so checking all before applying any is the same as rolling back.
    for (const [index, operation] of operations.entries()) {
      try {
        this.#check(partitionKey, operation);
      } catch (error) {
        if (error instanceof StorageRefusal) {
          throw new StorageRefusal(error.status, error.code, { failedIndex: index });
        }
        throw error;
      }
    }
    for (const operation of operations) {
      if (operation.kind === 'delete') {
        this.delete(partitionKey, operation.rowKey, operation.etag);
      } else {
        this.#store(partitionKey, operation.rowKey, operation.values);
      }
    }
  }

  query(query: RowQuery): RowPage {
    const pageSize = Math.min(query.pageSize ?? TABLE_PAGE_ROWS_MAX, TABLE_PAGE_ROWS_MAX);
    const rows: Row[] = [];
    for (const row of this.#matching(query)) {
      if (rows.length === pageSize) {
        return { rows, continuation: continuationAt(row) };
      }
      rows.push(query.select === undefined ? row : withColumns(row, query.select));
    }
    return { rows, continuation: undefined };
  }

  *#matching(query: RowQuery): Generator<Row> {
    const start = query.continuation === undefined ? undefined : keysOf(query.continuation);
    const firstPartition = maxOf(query.partition, query.partitionFrom, start?.partitionKey);
    for (const partitionKey of this.#partitionKeys.from(firstPartition)) {
      if (isAbove(partitionKey, query.partition) || isAbove(partitionKey, query.partitionTo)) {
        return;
      }
      const resumed = partitionKey === start?.partitionKey ? start.rowKey : undefined;
      const partition = this.#partition(partitionKey);
      for (const rowKey of partition.rowKeys.from(maxOf(query.rowFrom, query.rowAfter, resumed))) {
        if (query.rowBefore !== undefined && rowKey >= query.rowBefore) {
          break;
        }
        if (rowKey !== query.rowAfter) {
          yield partition.rows.get(rowKey) as Row;
        }
      }
    }
  }

  #check(partitionKey: string, operation: RowOperation): void {
    if (operation.kind === 'insert') {
      if (this.#partitions.get(partitionKey)?.rows.has(operation.rowKey)) {
        throw new StorageRefusal(409, 'EntityAlreadyExists');
      }
    } else if (operation.kind !== 'upsert') {
      this.#checkEtag(partitionKey, operation.rowKey, operation.etag);
    }
  }

  #checkEtag(partitionKey: string, rowKey: string, etag: string | undefined): void {
    const row = this.get(partitionKey, rowKey);
    if (etag !== undefined && row.etag !== etag) {
      throw new StorageRefusal(412, 'UpdateConditionNotSatisfied');
    }
  }

  #store(partitionKey: string, rowKey: string, values: RowValues): string {
    const partition = this.#partition(partitionKey);
    if (!partition.rows.has(rowKey)) {
      partition.rowKeys.add(rowKey);
    }
    const etag = this.#context.nextEtag();
    partition.rows.set(rowKey, { partitionKey, rowKey, etag, values: { ...values } });
    return etag;
  }

  #partition(partitionKey: string): Partition {
    let partition = this.#partitions.get(partitionKey);
    if (partition === undefined) {
      partition = { rows: new Map(), rowKeys: new SortedKeys() };
      this.#partitions.set(partitionKey, partition);
      this.#partitionKeys.add(partitionKey);
    }
    return partition;
  }
}

function withColumns(row: Row, columns: readonly string[]): Row {
  const values = Object.fromEntries(Object.entries(row.values).filter(([column]) => columns.includes(column)));
  return { ...row, values };
}

function maxOf(...bounds: readonly (string | undefined)[]): string {
  return bounds.reduce<string>((max, bound) => (bound !== undefined && bound > max ? bound : max), '');
}

function isAbove(key: string, bound: string | undefined): boolean {
  return bound !== undefined && key > bound;
}

function continuationAt(row: Row): string {
  return Buffer.from(JSON.stringify([row.partitionKey, row.rowKey]), 'utf8').toString('base64url');
}

function keysOf(continuation: string): { partitionKey: string; rowKey: string } {
  const [partitionKey, rowKey] = JSON.parse(Buffer.from(continuation, 'base64url').toString('utf8')) as [
    string,
    string,
  ];
  return { partitionKey, rowKey };
}
