/**
 * The table port over single requests. Invariant: a lost response of a conditional change is answered `written` only
 * when every row now holds exactly the values of this call, so a row that elects a winner must carry an attempt id.
 */

import pMap from 'p-map';
import { AriusError } from '../../errors.ts';
import { ROW_READ_BACK_WORKERS, TABLE_BATCH_ROWS_MAX, TABLE_PAGE_ROWS_MAX } from '../../limits.ts';
import { type AttemptTiming, attemptRequest } from '../attempts.ts';
import type {
  BatchResult,
  DeleteResult,
  Row,
  RowOperation,
  RowPage,
  RowQuery,
  RowValues,
  Table,
  WriteResult,
} from '../ports.ts';
import { isConditionFailure, isMissing, isMissingContainerOrTable } from '../refusal.ts';
import type { TableRequests } from '../requests.ts';
import { checkKeys, checkValues } from './input-checks.ts';

export class ResolvedTable implements Table {
  readonly #requests: TableRequests;
  readonly #timing: AttemptTiming;

  constructor(requests: TableRequests, timing: AttemptTiming) {
    this.#requests = requests;
    this.#timing = timing;
  }

  get name(): string {
    return this.#requests.name;
  }

  async createIfMissing(): Promise<void> {
    await this.#attempt('create', () => this.#requests.createTable());
  }

  async get(partitionKey: string, rowKey: string): Promise<Row | undefined> {
    checkKeys(partitionKey, rowKey);
    return await this.#attempt('read a row of', () => this.#find(partitionKey, rowKey));
  }

  async insert(partitionKey: string, rowKey: string, values: RowValues): Promise<WriteResult> {
    checkKeys(partitionKey, rowKey);
    checkValues(values);
    return await this.#conditionalWrite(partitionKey, rowKey, values, () =>
      this.#requests.insert(partitionKey, rowKey, values),
    );
  }

  async replace(partitionKey: string, rowKey: string, values: RowValues, etag: string): Promise<WriteResult> {
    checkKeys(partitionKey, rowKey);
    checkValues(values);
    return await this.#conditionalWrite(partitionKey, rowKey, values, () =>
      this.#requests.replace(partitionKey, rowKey, values, etag),
    );
  }

  async upsert(partitionKey: string, rowKey: string, values: RowValues): Promise<string> {
    checkKeys(partitionKey, rowKey);
    checkValues(values);
    return await this.#attempt('write a row of', () => this.#requests.upsert(partitionKey, rowKey, values));
  }

  async delete(partitionKey: string, rowKey: string, etag: string): Promise<DeleteResult> {
    checkKeys(partitionKey, rowKey);
    return await this.#attempt('delete a row of', async (mayBeApplied) => {
      try {
        await this.#requests.delete(partitionKey, rowKey, etag);
        return 'deleted';
      } catch (error) {
        if (isMissing(error) && !isMissingContainerOrTable(error)) {
          return mayBeApplied ? 'deleted' : 'missing';
        }
        if (isConditionFailure(error)) {
          return 'changed';
        }
        throw error;
      }
    });
  }

  async queryPage(query: RowQuery): Promise<RowPage> {
    const pageSize = Math.min(query.pageSize ?? TABLE_PAGE_ROWS_MAX, TABLE_PAGE_ROWS_MAX);
    return await this.#attempt('query', () => this.#requests.query({ ...query, pageSize }));
  }

  async batch(partitionKey: string, operations: readonly RowOperation[]): Promise<BatchResult> {
    checkBatch(partitionKey, operations);
    if (operations.length === 0) {
      return { outcome: 'written' };
    }
    return await this.#attempt('write a batch to', async (mayBeApplied): Promise<BatchResult> => {
      try {
        await this.#requests.batch(partitionKey, operations);
        return { outcome: 'written' };
      } catch (error) {
        const rowMissing = isMissing(error) && !isMissingContainerOrTable(error);
        if (!isConditionFailure(error) && !rowMissing) {
          throw error;
        }
        if (mayBeApplied && (await this.#batchIsApplied(partitionKey, operations))) {
          return { outcome: 'written' };
        }
        return { outcome: 'conflict', failedIndex: error.failedIndex };
      }
    });
  }

  async #conditionalWrite(
    partitionKey: string,
    rowKey: string,
    values: RowValues,
    request: () => Promise<string>,
  ): Promise<WriteResult> {
    return await this.#attempt('write a row of', async (mayBeApplied): Promise<WriteResult> => {
      try {
        return { outcome: 'written', etag: await request() };
      } catch (error) {
        // A row to replace that is gone is a condition that does not hold.
        const rowMissing = isMissing(error) && !isMissingContainerOrTable(error);
        if (!isConditionFailure(error) && !rowMissing) {
          throw error;
        }
        const row = mayBeApplied ? await this.#find(partitionKey, rowKey) : undefined;
        return row !== undefined && sameValues(row.values, values)
          ? { outcome: 'written', etag: row.etag }
          : { outcome: 'conflict' };
      }
    });
  }

  async #find(partitionKey: string, rowKey: string): Promise<Row | undefined> {
    try {
      return await this.#requests.get(partitionKey, rowKey);
    } catch (error) {
      if (isMissing(error) && !isMissingContainerOrTable(error)) {
        return undefined;
      }
      throw error;
    }
  }

  async #batchIsApplied(partitionKey: string, operations: readonly RowOperation[]): Promise<boolean> {
    const applied = await pMap(
      operations,
      async (operation) => {
        const row = await this.#find(partitionKey, operation.rowKey);
        return operation.kind === 'delete'
          ? row === undefined
          : row !== undefined && sameValues(row.values, operation.values);
      },
      { concurrency: ROW_READ_BACK_WORKERS },
    );
    return applied.every(Boolean);
  }

  async #attempt<T>(verb: string, once: (mayBeApplied: boolean) => Promise<T>): Promise<T> {
    return await attemptRequest(this.#timing, `${verb} table ${this.name}`, once);
  }
}

function checkBatch(partitionKey: string, operations: readonly RowOperation[]): void {
  const rowKeys = new Set(operations.map((operation) => operation.rowKey));
  if (operations.length > TABLE_BATCH_ROWS_MAX || rowKeys.size !== operations.length) {
    throw new AriusError(
      'bad-request',
      `A batch takes at most ${TABLE_BATCH_ROWS_MAX} operations, each on another row`,
      'This is a defect in the caller: storage would refuse it.',
    );
  }
  for (const operation of operations) {
    checkKeys(partitionKey, operation.rowKey);
    if (operation.kind !== 'delete') {
      checkValues(operation.values);
    }
  }
}

function sameValues(found: RowValues, wanted: RowValues): boolean {
  const entries = Object.entries(found);
  return entries.length === Object.keys(wanted).length && entries.every(([column, value]) => wanted[column] === value);
}
