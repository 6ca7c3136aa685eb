/**
 * Rows as entities. Types are explicit where JSON would leave them to the service: a bigint is Int64; a number is
 * Int32 when it is an integer that fits 32 bits, else Double. Both come back as the same JavaScript value.
 */

import type { Edm, TableEntityResult } from '@azure/data-tables';
import type { ColumnValue, Row, RowValues } from '../ports.ts';

type TypedValue = string | boolean | Edm<'Int32'> | Edm<'Int64'> | Edm<'Double'>;

export interface RowEntity extends Record<string, TypedValue> {
  partitionKey: string;
  rowKey: string;
}

/** As the library takes it. */
export function toEntity(partitionKey: string, rowKey: string, values: RowValues): RowEntity {
  const columns = Object.entries(values).map(([column, value]): [string, TypedValue] => [column, typed(value)]);
  return { ...Object.fromEntries(columns), partitionKey, rowKey };
}

/** As the table service takes it, in JSON. */
export function toEntityJson(partitionKey: string, rowKey: string, values: RowValues): string {
  const json: Record<string, unknown> = { PartitionKey: partitionKey, RowKey: rowKey };
  for (const [column, value] of Object.entries(values)) {
    const typedValue = typed(value);
    if (typeof typedValue === 'object') {
      json[column] = typedValue.value;
      json[`${column}@odata.type`] = `Edm.${typedValue.type}`;
    } else {
      json[column] = typedValue;
    }
  }
  return JSON.stringify(json);
}

export function toRow(entity: TableEntityResult<Record<string, unknown>>): Row {
  const { partitionKey, rowKey, etag, timestamp: _timestamp, ...columns } = entity;
  const values: Record<string, ColumnValue> = {};
  for (const [column, value] of Object.entries(columns)) {
    // Annotations of the protocol, and types that the product does not write, are not values.
    if (!column.startsWith('odata.') && isColumnValue(value)) {
      values[column] = value;
    }
  }
  return { partitionKey: partitionKey ?? '', rowKey: rowKey ?? '', etag, values };
}

function typed(value: ColumnValue): TypedValue {
  if (typeof value === 'bigint') {
    return { type: 'Int64', value: value.toString() };
  }
  if (typeof value === 'number') {
    // `| 0` is the value itself exactly for 32-bit integers.
    return { type: (value | 0) === value ? 'Int32' : 'Double', value };
  }
  return value;
}

function isColumnValue(value: unknown): value is ColumnValue {
  return ['string', 'number', 'bigint', 'boolean'].includes(typeof value);
}
