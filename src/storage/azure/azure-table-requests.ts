/** The single requests of one table, over @azure/data-tables. */

import { odata, type TableClient } from '@azure/data-tables';
import type { Row, RowOperation, RowPage, RowQuery, RowValues } from '../ports.ts';
import type { TableRequests } from '../requests.ts';
import { answered } from './azure-errors.ts';
import { toEntity, toRow } from './entity-mapping.ts';
import { submitBatch } from './table-batch.ts';

/** Always asked for; the ETag is made of the time stamp. */
const KEY_COLUMNS = ['PartitionKey', 'RowKey', 'Timestamp'];

export class AzureTableRequests implements TableRequests {
  readonly name: string;
  readonly #client: TableClient;

  constructor(client: TableClient) {
    this.name = client.tableName;
    this.#client = client;
  }

  async createTable(): Promise<void> {
    await answered((abortSignal) => this.#client.createTable({ abortSignal }));
  }

  async get(partitionKey: string, rowKey: string): Promise<Row> {
    return toRow(
      await answered((abortSignal) =>
        this.#client.getEntity<Record<string, unknown>>(partitionKey, rowKey, { abortSignal }),
      ),
    );
  }

  async insert(partitionKey: string, rowKey: string, values: RowValues): Promise<string> {
    const entity = toEntity(partitionKey, rowKey, values);
    const { etag } = await answered((abortSignal) => this.#client.createEntity(entity, { abortSignal }));
    return etag ?? '';
  }

  async replace(partitionKey: string, rowKey: string, values: RowValues, etag: string): Promise<string> {
    const entity = toEntity(partitionKey, rowKey, values);
    const replaced = await answered((abortSignal) =>
      this.#client.updateEntity(entity, 'Replace', { abortSignal, etag }),
    );
    return replaced.etag ?? '';
  }

  async upsert(partitionKey: string, rowKey: string, values: RowValues): Promise<string> {
    const entity = toEntity(partitionKey, rowKey, values);
    const { etag } = await answered((abortSignal) => this.#client.upsertEntity(entity, 'Replace', { abortSignal }));
    return etag ?? '';
  }

  async delete(partitionKey: string, rowKey: string, etag: string): Promise<void> {
    await answered((abortSignal) => this.#client.deleteEntity(partitionKey, rowKey, { abortSignal, etag }));
  }

  async query(query: RowQuery): Promise<RowPage> {
    const filter = filterOf(query);
    return await answered(async (abortSignal) => {
      const pages = this.#client
        .listEntities<Record<string, unknown>>({
          abortSignal,
          queryOptions: {
            ...(filter === '' ? {} : { filter }),
            ...(query.select === undefined ? {} : { select: [...KEY_COLUMNS, ...query.select] }),
          },
        })
        .byPage({
          ...(query.pageSize === undefined ? {} : { maxPageSize: query.pageSize }),
          ...(query.continuation === undefined ? {} : { continuationToken: query.continuation }),
        });
      const page = (await pages.next()).value;
      return { rows: (page ?? []).map(toRow), continuation: page?.continuationToken };
    });
  }

  async batch(partitionKey: string, operations: readonly RowOperation[]): Promise<void> {
    await answered((abortSignal) => submitBatch(this.#client, partitionKey, operations, abortSignal));
  }
}

function filterOf(query: RowQuery): string {
  const bounds: readonly (string | undefined)[] = [
    query.partition === undefined ? undefined : odata`PartitionKey eq ${query.partition}`,
    query.partitionFrom === undefined ? undefined : odata`PartitionKey ge ${query.partitionFrom}`,
    query.partitionTo === undefined ? undefined : odata`PartitionKey le ${query.partitionTo}`,
    query.rowFrom === undefined ? undefined : odata`RowKey ge ${query.rowFrom}`,
    query.rowAfter === undefined ? undefined : odata`RowKey gt ${query.rowAfter}`,
    query.rowBefore === undefined ? undefined : odata`RowKey lt ${query.rowBefore}`,
  ];
  return bounds.filter((bound) => bound !== undefined).join(' and ');
}
