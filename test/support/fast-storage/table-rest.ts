/** Enough of the Table service's REST interface for Azure's library and our adapter's transactions. */

import type { MemoryAccount } from '../../../src/storage/memory/memory-account.ts';
import type { TableStore } from '../../../src/storage/memory/table-store.ts';
import type { ColumnValue, Row, RowOperation, RowQuery, RowValues } from '../../../src/storage/ports.ts';
import { StorageRefusal } from '../../../src/storage/refusal.ts';
import { type RestAnswer, type RestRequest, unsupported } from './rest.ts';

const JSON_TYPE = 'application/json;odata=fullmetadata;charset=utf-8';
const INT32_MAX = 2 ** 31 - 1;

/** Never throws a refusal: it answers it. */
export function handleTable(account: MemoryAccount, request: RestRequest, body: string): RestAnswer {
  try {
    return answer(account, request, body);
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return errorAnswer(error);
    }
    throw error;
  }
}

function answer(account: MemoryAccount, request: RestRequest, body: string): RestAnswer {
  const path = request.path.join('/');
  if (path === '$batch') {
    return handleBatch(account, body);
  }
  if (path === 'Tables' || path.startsWith('Tables(')) {
    return handleTables(account, request, path, body);
  }
  const keys = /^([A-Za-z0-9]+)\(PartitionKey='(.*)',RowKey='(.*)'\)$/s.exec(path);
  if (keys !== null) {
    const table = account.table(keys[1] ?? '');
    return handleRow(table, request, unquote(keys[2] ?? ''), unquote(keys[3] ?? ''), body);
  }
  const name = path.replace(/\(\)$/, '');
  if (request.method === 'POST') {
    const { partitionKey, rowKey, values } = parseEntity(body);
    return written(account.table(name).insert(partitionKey, rowKey, values));
  }
  if (request.method === 'GET') {
    return queryRows(account.table(name), request.query);
  }
  throw unsupported(request);
}

function handleTables(account: MemoryAccount, request: RestRequest, path: string, body: string): RestAnswer {
  if (request.method === 'POST') {
    const name = String(JSON.parse(body).TableName);
    if (!account.createTable(name)) {
      throw new StorageRefusal(409, 'TableAlreadyExists');
    }
    return { status: 204, headers: { 'preference-applied': 'return-no-content' } };
  }
  if (request.method === 'DELETE') {
    account.deleteTable(/^Tables\('(.*)'\)$/.exec(path)?.[1] ?? '');
    return { status: 204 };
  }
  return jsonAnswer({ value: account.tableNames().map((name) => ({ TableName: name })) });
}

function handleRow(
  table: TableStore,
  request: RestRequest,
  partitionKey: string,
  rowKey: string,
  body: string,
): RestAnswer {
  const etag = etagOf(request.headers['if-match']);
  switch (request.method) {
    case 'GET':
      return jsonAnswer(entityOf(table.get(partitionKey, rowKey)));
    case 'PUT': {
      const { values } = parseEntity(body);
      const isUpsert = request.headers['if-match'] === undefined;
      return written(
        isUpsert ? table.upsert(partitionKey, rowKey, values) : table.replace(partitionKey, rowKey, values, etag),
      );
    }
    case 'DELETE':
      table.delete(partitionKey, rowKey, etag);
      return { status: 204 };
    default:
      throw unsupported(request);
  }
}

function queryRows(table: TableStore, query: URLSearchParams): RestAnswer {
  const select = query.get('$select');
  const top = query.get('$top');
  const page = table.query({
    ...parseFilter(query.get('$filter') ?? ''),
    ...(select === null ? {} : { select: select.split(',') }),
    ...(top === null ? {} : { pageSize: Number(top) }),
    ...(query.get('NextPartitionKey') ? { continuation: query.get('NextPartitionKey') as string } : {}),
  });
  return jsonAnswer(
    { value: page.rows.map(entityOf) },
    // The library hands the token back as it is; it need not be a partition key.
    page.continuation === undefined ? {} : { 'x-ms-continuation-NextPartitionKey': page.continuation },
  );
}

/** A conjunction of bounds on the keys, as our adapter writes it. */
function parseFilter(filter: string): RowQuery {
  const query: Record<string, string> = {};
  const names: Readonly<Record<string, string>> = {
    'PartitionKey eq': 'partition',
    'PartitionKey ge': 'partitionFrom',
    'PartitionKey le': 'partitionTo',
    'RowKey ge': 'rowFrom',
    'RowKey gt': 'rowAfter',
    'RowKey lt': 'rowBefore',
  };
  let rest = filter;
  while (rest !== '') {
    const found = /^(?:and )?(\w+ \w+) '((?:[^']|'')*)' ?/.exec(rest);
    const name = names[found?.[1] ?? ''];
    if (found === null || name === undefined) {
      throw new StorageRefusal(501, `NotImplemented filter ${filter}`);
    }
    query[name] = unquote(found[2] ?? '');
    rest = rest.slice(found[0].length);
  }
  return query;
}

function handleBatch(account: MemoryAccount, body: string): RestAnswer {
  const operations = [...body.matchAll(/^(POST|PUT|DELETE) (\S+) HTTP\/1\.1\r\n(.*?)\r\n\r\n(.*?)\r\n--changeset/gms)];
  const parsed = operations.map(([, method = '', url = '', headers = '', json = '']) =>
    parseOperation(account, method, new URL(url), headers, json.trim()),
  );
  const first = parsed[0];
  if (first === undefined) {
    throw new StorageRefusal(400, 'InvalidInput');
  }
  try {
    first.table.batch(
      first.partitionKey,
      parsed.map((part) => part.operation),
    );
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return batchAnswer([failedPart(error)]);
    }
    throw error;
  }
  return batchAnswer(parsed.map(() => 'HTTP/1.1 204 No Content\r\nDataServiceVersion: 3.0;\r\n\r\n'));
}

function parseOperation(
  account: MemoryAccount,
  method: string,
  url: URL,
  headers: string,
  json: string,
): { table: TableStore; partitionKey: string; operation: RowOperation } {
  const [, name = ''] = /^\/[^/]+\/([A-Za-z0-9]+)/.exec(url.pathname) ?? [];
  const table = account.table(name);
  const keys = /\(PartitionKey='(.*)',RowKey='(.*)'\)$/.exec(decodeURIComponent(url.pathname));
  const ifMatch = /^if-match: (.*?)\r?$/im.exec(headers)?.[1];
  if (method === 'POST') {
    const { partitionKey, rowKey, values } = parseEntity(json);
    return { table, partitionKey, operation: { kind: 'insert', rowKey, values } };
  }
  const partitionKey = unquote(keys?.[1] ?? '');
  const rowKey = unquote(keys?.[2] ?? '');
  // `*` is any ETag: that of the row as it is.
  const etag = etagOf(ifMatch) ?? etagNow(table, partitionKey, rowKey);
  if (method === 'DELETE') {
    return { table, partitionKey, operation: { kind: 'delete', rowKey, etag } };
  }
  const { values } = parseEntity(json);
  return {
    table,
    partitionKey,
    operation: ifMatch === undefined ? { kind: 'upsert', rowKey, values } : { kind: 'replace', rowKey, values, etag },
  };
}

function etagNow(table: TableStore, partitionKey: string, rowKey: string): string {
  return table.query({ partition: partitionKey, rowFrom: rowKey, pageSize: 1 }).rows[0]?.etag ?? '';
}

function batchAnswer(parts: readonly string[]): RestAnswer {
  const lines = parts.map(
    (part) =>
      `--changesetresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${part}`,
  );
  return {
    status: 202,
    headers: { 'content-type': 'multipart/mixed; boundary=batchresponse_1' },
    body: [
      '--batchresponse_1',
      'Content-Type: multipart/mixed; boundary=changesetresponse_1',
      '',
      ...lines,
      '--changesetresponse_1--',
      '--batchresponse_1--',
      '',
    ].join('\r\n'),
  };
}

function failedPart(refusal: StorageRefusal): string {
  const message = `${refusal.failedIndex ?? 0}:${refusal.code}`;
  return `HTTP/1.1 ${refusal.status} Refused\r\nContent-Type: application/json\r\n\r\n${errorJson(refusal.code, message)}`;
}

function parseEntity(body: string): { partitionKey: string; rowKey: string; values: RowValues } {
  const { PartitionKey, RowKey, ...columns } = JSON.parse(body) as Record<string, string | number | boolean>;
  const values: Record<string, ColumnValue> = {};
  for (const [column, value] of Object.entries(columns)) {
    if (!column.endsWith('@odata.type')) {
      values[column] = typedValue(value, columns[`${column}@odata.type`]);
    }
  }
  return { partitionKey: String(PartitionKey), rowKey: String(RowKey), values };
}

function typedValue(value: string | number | boolean, type: unknown): ColumnValue {
  switch (type) {
    case 'Edm.Int64':
      return BigInt(value);
    case 'Edm.Double':
    case 'Edm.Int32':
      return Number(value);
    case undefined:
      return value;
    default:
      throw new StorageRefusal(501, `NotImplemented ${String(type)}`);
  }
}

function entityOf(row: Row): Record<string, unknown> {
  const entity: Record<string, unknown> = {
    'odata.etag': `W/"${row.etag}"`,
    PartitionKey: row.partitionKey,
    RowKey: row.rowKey,
  };
  for (const [column, value] of Object.entries(row.values)) {
    entity[column] = typeof value === 'bigint' ? value.toString() : value;
    if (typeof value === 'bigint') {
      entity[`${column}@odata.type`] = 'Edm.Int64';
    } else if (typeof value === 'number' && Math.abs(value) > INT32_MAX) {
      entity[`${column}@odata.type`] = 'Edm.Double';
    }
  }
  return entity;
}

function written(etag: string): RestAnswer {
  return { status: 204, headers: { etag: `W/"${etag}"`, 'preference-applied': 'return-no-content' } };
}

function jsonAnswer(value: unknown, headers: RestAnswer['headers'] = {}): RestAnswer {
  return { status: 200, headers: { 'content-type': JSON_TYPE, ...headers }, body: JSON.stringify(value) };
}

function errorAnswer(refusal: StorageRefusal): RestAnswer {
  const headers = { 'content-type': JSON_TYPE, 'x-ms-error-code': refusal.code };
  return { status: refusal.status, headers, body: errorJson(refusal.code, refusal.message) };
}

function errorJson(code: string, message: string): string {
  return JSON.stringify({ 'odata.error': { code, message: { lang: 'en-US', value: message } } });
}

/** Undefined for a missing header and for `*`. */
function etagOf(header: string | undefined): string | undefined {
  return header === undefined || header === '*' ? undefined : header.replace(/^W\//, '').replaceAll('"', '');
}

function unquote(key: string): string {
  return key.replaceAll("''", "'");
}
