/**
 * How a single storage request can fail, in the vocabulary of the real service: it was answered with a refusal (a
 * status and a code), or it was not answered, and then nobody knows whether it was applied. Adapters throw these two
 * and nothing else; src/storage/resolved turns them into outcomes and AriusErrors. Nothing looks at message texts.
 */

import { AriusError } from '../errors.ts';

/** Occurs when storage answered a request with an error status; the request was not applied. */
export class StorageRefusal extends Error {
  readonly status: number;
  /** The service's error code, for example `BlobAlreadyExists`; empty when it sent none (some HEAD answers). */
  readonly code: string;
  /** Of a refused batch: the operation that was refused. */
  readonly failedIndex: number | undefined;

  constructor(
    status: number,
    code: string,
    options: { failedIndex?: number | undefined; requestId?: string | undefined; cause?: unknown } = {},
  ) {
    const request = options.requestId === undefined ? '' : ` (request ${options.requestId})`;
    super(`${status} ${code}${request}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StorageRefusal';
    this.status = status;
    this.code = code;
    this.failedIndex = options.failedIndex;
  }
}

/** Occurs when no usable answer came (connection lost, time-out, 5xx, throttled): the request may have been applied. */
export class StorageUnanswered extends Error {
  /** How long the service asked to wait, if it did. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StorageUnanswered';
    this.retryAfterMs = options.retryAfterMs;
  }
}

/**
 * 409 codes that say "something is there already": for a conditional write the same as 412. An archived or immutable
 * blob, or one of another type, is something that is there.
 */
const OCCUPIED_CODES: ReadonlySet<string> = new Set([
  'BlobAlreadyExists',
  'BlobArchived',
  'BlobBeingRehydrated',
  'BlobImmutableDueToPolicy',
  'ConditionNotMet',
  'EntityAlreadyExists',
  'InvalidBlobType',
  'TargetConditionNotMet',
  'UpdateConditionNotSatisfied',
]);

/** A conditional request met another state than it asked for. */
export function isConditionFailure(error: unknown): error is StorageRefusal {
  if (!(error instanceof StorageRefusal)) {
    return false;
  }
  return (
    error.status === 412 ||
    (error.status === 409 && OCCUPIED_CODES.has(error.code)) ||
    // What Azure answers when a signature without write permission meets an existing blob.
    (error.status === 403 && error.code === 'UnauthorizedBlobOverwrite')
  );
}

export function isMissing(error: unknown): error is StorageRefusal {
  return error instanceof StorageRefusal && error.status === 404;
}

/** The blob, not its container or table, is what is missing. */
export function isMissingContainerOrTable(error: unknown): boolean {
  return isMissing(error) && (error.code === 'ContainerNotFound' || error.code === 'TableNotFound');
}

/** What leaves the storage layer when a refusal is not an outcome of the port. `what` names the request. */
export function refusalToAriusError(refusal: StorageRefusal, what: string): AriusError {
  const detail = `${what}: storage answered ${refusal.message}`;
  if (refusal.status === 401 || refusal.status === 403) {
    return new AriusError('not-allowed', detail, 'Check the permissions of the identity, or ask for a new grant.', {
      cause: refusal,
    });
  }
  if (refusal.status === 409 && (refusal.code === 'BlobArchived' || refusal.code === 'BlobBeingRehydrated')) {
    return new AriusError('chunk-archived', detail, 'Rehydrate the blob, then try again.', { cause: refusal });
  }
  if (refusal.status === 404) {
    return new AriusError('not-found', detail, 'Check the name.', { cause: refusal });
  }
  if (refusal.status === 416) {
    return new AriusError('bad-request', detail, 'Ask for a range that begins inside the blob.', { cause: refusal });
  }
  return new AriusError('storage-failed', detail, 'Try again; if it persists, look at the storage account.', {
    cause: refusal,
  });
}
