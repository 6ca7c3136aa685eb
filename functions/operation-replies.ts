/** How an operation is answered: where to ask for it, and when to ask again. */

import type { OperationInfo } from '../src/contract/schemas.ts';
import { OPERATION_POLL_SECONDS } from '../src/limits.ts';
import type { Service } from '../src/service/service.ts';
import { type ErrorLog, problemOf } from './problems.ts';

export interface OperationReply {
  readonly body: OperationInfo;
  readonly headers: Readonly<Record<string, string>>;
}

/** The job is queued: its row is written. A wake that cannot be sent is made up for by the timer. */
export async function accepted(service: Service, log: ErrorLog, operation: OperationInfo): Promise<OperationReply> {
  try {
    await service.announceJob(operation.repository);
  } catch (error) {
    problemOf(error, log, 'Announcing a job');
  }
  const location = `/api/repositories/${operation.repository}/operations/${operation.operationId}`;
  return { body: operation, headers: { Location: location, 'Retry-After': String(OPERATION_POLL_SECONDS) } };
}

export function pollingHeaders(operation: OperationInfo): Record<string, string> {
  const isOver = operation.state === 'succeeded' || operation.state === 'failed';
  return isOver ? {} : { 'Retry-After': String(OPERATION_POLL_SECONDS) };
}
