/** How an operation is answered: where to ask for it, and when to ask again. */

import type { OperationInfo } from '../src/contract/schemas.ts';
import { OPERATION_POLL_SECONDS } from '../src/limits.ts';

export function accepted(operation: OperationInfo): {
  body: OperationInfo;
  headers: Record<string, string>;
  wake: string;
} {
  const location = `/api/repositories/${operation.repository}/operations/${operation.operationId}`;
  const headers = { Location: location, 'Retry-After': String(OPERATION_POLL_SECONDS) };
  return { body: operation, headers, wake: operation.repository };
}

export function pollingHeaders(operation: OperationInfo): Record<string, string> {
  const isOver = operation.state === 'succeeded' || operation.state === 'failed';
  return isOver ? {} : { 'Retry-After': String(OPERATION_POLL_SECONDS) };
}
