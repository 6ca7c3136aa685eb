/**
 * Entity group transactions on the wire. Ours, since the library's own transactions delete with `If-Match: *` whatever
 * ETag they are given (data-tables 13.3.2), and a row that was rewritten meanwhile must not be removed.
 */

import { randomUUID } from 'node:crypto';
import {
  createDefaultHttpClient,
  createHttpHeaders,
  createPipelineRequest,
  type HttpClient,
  type PipelineResponse,
  RestError,
} from '@azure/core-rest-pipeline';
import type { TableClient } from '@azure/data-tables';
import type { RowOperation } from '../ports.ts';
import { toEntityJson } from './entity-mapping.ts';

const LINE = '\r\n';
const JSON_WITHOUT_METADATA = 'application/json;odata=nometadata';

let sharedHttpClient: HttpClient | undefined;

/** Throws a RestError when the transaction was refused; its message is the service's. */
export async function submitBatch(
  client: TableClient,
  partitionKey: string,
  operations: readonly RowOperation[],
  abortSignal: AbortSignal,
): Promise<void> {
  const boundary = `batch_${randomUUID()}`;
  const accountUrl = client.url.replace(/\/$/, '');
  const request = createPipelineRequest({
    method: 'POST',
    url: `${accountUrl}/$batch`,
    body: batchBody(`${accountUrl}/${client.tableName}`, boundary, partitionKey, operations),
    headers: createHttpHeaders({
      accept: JSON_WITHOUT_METADATA,
      'content-type': `multipart/mixed; boundary=${boundary}`,
      dataserviceversion: '3.0;',
      maxdataserviceversion: '3.0;NetFx',
      'x-ms-version': '2019-02-02',
    }),
    abortSignal,
    allowInsecureConnection: accountUrl.startsWith('http:'),
  });
  sharedHttpClient ??= createDefaultHttpClient();
  checkAnswer(await client.pipeline.sendRequest(sharedHttpClient, request));
}

function batchBody(
  tableUrl: string,
  boundary: string,
  partitionKey: string,
  operations: readonly RowOperation[],
): string {
  const changeset = `changeset_${randomUUID()}`;
  const parts = operations.map((operation) =>
    [
      `--${changeset}`,
      'content-type: application/http',
      'content-transfer-encoding: binary',
      '',
      ...operationLines(tableUrl, partitionKey, operation),
    ].join(LINE),
  );
  return [
    `--${boundary}`,
    `content-type: multipart/mixed; boundary=${changeset}`,
    '',
    ...parts,
    `--${changeset}--`,
    `--${boundary}--`,
    '',
  ].join(LINE);
}

/** One HTTP request as text: request line, headers, empty line, body. */
function operationLines(tableUrl: string, partitionKey: string, operation: RowOperation): readonly string[] {
  const { kind, rowKey } = operation;
  const rowUrl = `${tableUrl}(PartitionKey='${keyInUrl(partitionKey)}',RowKey='${keyInUrl(rowKey)}')`;
  const common = [`accept: ${JSON_WITHOUT_METADATA}`, 'dataserviceversion: 3.0'];
  if (kind === 'delete') {
    return [`DELETE ${rowUrl} HTTP/1.1`, ...common, `if-match: ${operation.etag}`, '', ''];
  }
  const requestLine = kind === 'insert' ? `POST ${tableUrl} HTTP/1.1` : `PUT ${rowUrl} HTTP/1.1`;
  // Without If-Match a PUT is insert-or-replace.
  const condition = kind === 'replace' ? [`if-match: ${operation.etag}`] : [];
  const headers = [...common, 'content-type: application/json', 'prefer: return-no-content', ...condition];
  return [requestLine, ...headers, '', toEntityJson(partitionKey, rowKey, operation.values)];
}

function keyInUrl(key: string): string {
  // A quote is doubled inside an OData string; encodeURIComponent leaves quotes alone.
  return encodeURIComponent(key.replaceAll("'", "''"));
}

/** The answer is 202 also when the transaction was refused: then its only part is the refusal. */
function checkAnswer(response: PipelineResponse): void {
  const { request, status } = response;
  const text = response.bodyAsText ?? '';
  const partStatuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((found) => Number(found[1]));
  const failed = status >= 300 ? status : partStatuses.find((partStatus) => partStatus >= 300);
  if (failed !== undefined) {
    const { code, message } = odataError(text);
    throw new RestError(message, { statusCode: failed, code, request, response });
  }
  if (partStatuses.length === 0) {
    // The answer did not come whole: below 400, so it counts as unanswered.
    throw new RestError('The answer to a table transaction was cut short', { statusCode: status, request, response });
  }
}

function odataError(text: string): { code: string; message: string } {
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  try {
    const error = JSON.parse(json)['odata.error'];
    return { code: String(error.code), message: String(error.message.value) };
  } catch {
    return { code: '', message: 'A table transaction was refused without an explanation' };
  }
}
