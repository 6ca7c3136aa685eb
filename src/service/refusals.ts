/** What the use cases refuse, each said in one place, so that the same condition always reads the same. */

import { AriusError } from '../errors.ts';

export function repositoryNotFound(repository: string): AriusError {
  return new AriusError(
    'repository-not-found',
    `This service keeps no repository "${repository}".`,
    'Check the name; create the repository, or adopt the container if another client wrote it.',
  );
}

export function runNotFound(repository: string, runId: string): AriusError {
  return new AriusError('run-not-found', `The repository "${repository}" has no run ${runId}.`, 'Start the run first.');
}

export function snapshotNotFound(repository: string, name: string): AriusError {
  return new AriusError(
    'snapshot-not-found',
    `The repository "${repository}" has no snapshot "${name}".`,
    'List the snapshots and name one of them.',
  );
}

export function operationNotFound(repository: string, operationId: string): AriusError {
  return new AriusError(
    'operation-not-found',
    `The repository "${repository}" has no operation ${operationId}.`,
    'Complete the run again to start one.',
  );
}

export function badRequest(detail: string): AriusError {
  return new AriusError('bad-request', detail, 'Correct the request and send it again.');
}

/** Something changed under the service at every look. */
export function stillChanging(what: string): AriusError {
  return new AriusError('busy', `${what} kept changing while it was looked at.`, 'Try again in a few seconds.', {
    retryAfterSeconds: 5,
  });
}
