/** Reading columns of our own rows: a column of another type than we wrote means that the row is not ours. */

import { AriusError } from '../errors.ts';
import type { ColumnValue, Row } from '../storage/ports.ts';

function broken(row: Row, column: string): AriusError {
  return new AriusError(
    'storage-failed',
    `The row ${row.partitionKey}/${row.rowKey} has no usable column "${column}".`,
    'Something else wrote into the tables of this service; give it storage of its own.',
  );
}

function column(row: Row, name: string): ColumnValue {
  const value = row.values[name];
  if (value === undefined) {
    throw broken(row, name);
  }
  return value;
}

export function textColumn(row: Row, name: string): string {
  const value = column(row, name);
  if (typeof value !== 'string') {
    throw broken(row, name);
  }
  return value;
}

/** Tables have no null: an empty text stands for it. */
export function optionalTextColumn(row: Row, name: string): string | null {
  const value = textColumn(row, name);
  return value === '' ? null : value;
}

export function numberColumn(row: Row, name: string): number {
  const value = column(row, name);
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw broken(row, name);
  }
  return Number(value);
}

export function booleanColumn(row: Row, name: string): boolean {
  const value = column(row, name);
  if (typeof value !== 'boolean') {
    throw broken(row, name);
  }
  return value;
}

export function timeColumn(row: Row, name: string): Date {
  const time = new Date(textColumn(row, name));
  if (Number.isNaN(time.getTime())) {
    throw broken(row, name);
  }
  return time;
}

/** A value of a closed set of words. */
export function wordColumn<T extends string>(row: Row, name: string, words: readonly T[]): T {
  const value = textColumn(row, name);
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) {
    throw broken(row, name);
  }
  return word;
}

/** JSON that we wrote ourselves; an empty text is null. */
export function jsonColumn<T>(row: Row, name: string): T | null {
  const text = textColumn(row, name);
  if (text === '') {
    return null;
  }
  try {
    return JSON.parse(text) as T;
  } catch {
    throw broken(row, name);
  }
}

export function jsonText(value: unknown): string {
  return value === null ? '' : JSON.stringify(value);
}
