/** From whatever was thrown to what may be shown: known errors as they are, defects as `internal` with an id for the log. */

import { randomUUID } from 'node:crypto';
import { AriusError, type Problem } from '../src/errors.ts';

export interface ErrorLog {
  error(...parts: unknown[]): void;
}

export function problemOf(error: unknown, log: ErrorLog, where: string): Problem {
  if (error instanceof AriusError) {
    return error.toProblem();
  }
  const errorId = randomUUID();
  log.error(`${where} failed, error id ${errorId}:`, error instanceof Error ? (error.stack ?? error.message) : error);
  return new AriusError(
    'internal',
    `Something went wrong in the service (error id ${errorId}).`,
    'Try again; if it stays, look for the error id in the log of the service.',
  ).toProblem();
}
