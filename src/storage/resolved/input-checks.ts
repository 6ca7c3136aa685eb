/**
 * What the real service documents about names, metadata and keys, checked before any request: the emulator is laxer
 * than Azure, and a violation must not first be seen in production.
 */

import { AriusError } from '../../errors.ts';
import { BLOB_METADATA_BYTES_MAX, BLOB_NAME_CHARACTERS_MAX } from '../../limits.ts';
import type { Metadata, RowValues } from '../ports.ts';

// Lower case only: the real service keeps the case in listings and lowers it in headers.
const METADATA_KEY = /^[a-z_][a-z0-9_]*$/;
// Header values: printable ASCII, not empty (the library drops those), no spaces at the ends (HTTP drops those).
const METADATA_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the service refuses control characters in keys
const FORBIDDEN_IN_KEY = /[/\\#?\u0000-\u001f\u007f-\u009f]/;
const COLUMN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;
const RESERVED_COLUMNS: ReadonlySet<string> = new Set(['PartitionKey', 'RowKey', 'Timestamp', 'etag']);

function invalid(detail: string): AriusError {
  return new AriusError('bad-request', detail, 'This is a defect in the caller: storage would refuse it.');
}

export function checkBlobName(name: string): void {
  if (name.length === 0 || name.length > BLOB_NAME_CHARACTERS_MAX) {
    throw invalid(`A blob name has 1 to ${BLOB_NAME_CHARACTERS_MAX} characters, this one ${name.length}`);
  }
}

export function checkMetadata(metadata: Metadata | undefined): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (!METADATA_KEY.test(key) || !METADATA_VALUE.test(value)) {
      throw invalid(`Metadata ${JSON.stringify(key)} is not storable: lower-case identifier and printable ASCII only`);
    }
    bytes += key.length + value.length;
  }
  if (bytes > BLOB_METADATA_BYTES_MAX) {
    throw invalid(`Metadata of ${bytes} bytes is more than ${BLOB_METADATA_BYTES_MAX}`);
  }
}

export function checkKeys(partitionKey: string, rowKey: string): void {
  for (const key of [partitionKey, rowKey]) {
    if (FORBIDDEN_IN_KEY.test(key) || key.length > 512) {
      throw invalid(`Not a table key: ${JSON.stringify(key.slice(0, 80))}`);
    }
  }
}

/** Numbers must be finite: the table service has no portable text for the others. */
export function checkValues(values: RowValues): void {
  for (const [column, value] of Object.entries(values)) {
    if (!COLUMN_NAME.test(column) || RESERVED_COLUMNS.has(column)) {
      throw invalid(`Not a column name: ${JSON.stringify(column)}`);
    }
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw invalid(`Column ${column} holds ${value}, which cannot be stored`);
    }
    if (typeof value === 'bigint' && BigInt.asIntN(64, value) !== value) {
      throw invalid(`Column ${column} holds a number beyond 64 bits`);
    }
  }
}
