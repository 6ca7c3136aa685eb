/**
 * The only place that knows how Azure's libraries report failures. What each library does differently: a HEAD has no
 * body, so its code is in `details.errorCode`; single table operations carry it in `details.odataError.code`;
 * transactions in `code`. Codes and statuses decide; message texts do not, with one exception (`failedIndexOf`).
 */

import { STORAGE_REQUEST_TIMEOUT_MS } from '../../limits.ts';
import { StorageRefusal, StorageUnanswered } from '../refusal.ts';

/** What RestError of the three libraries has in common. */
interface AzureErrorLike {
  readonly name?: string;
  readonly message?: string;
  readonly code?: unknown;
  readonly statusCode?: number;
  readonly details?: { readonly errorCode?: string; readonly odataError?: { readonly code?: string } };
  readonly response?: { readonly headers?: { get(name: string): string | undefined } };
}

/** Throttled, timed out at the server, or failed there: nobody knows whether it was applied, and asking again helps. */
const TRY_AGAIN_STATUSES: ReadonlySet<number> = new Set([408, 429]);

/** Thrown by @azure/identity when no token can be had. */
const CREDENTIAL_ERRORS: ReadonlySet<string> = new Set([
  'AggregateAuthenticationError',
  'AuthenticationError',
  'AuthenticationRequiredError',
  'CredentialUnavailableError',
]);

/**
 * Makes one request with a time limit and throws StorageRefusal or StorageUnanswered when it fails. The limit ends
 * with the answer: a body that is streamed afterwards has its own.
 */
export async function answered<T>(request: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), STORAGE_REQUEST_TIMEOUT_MS);
  try {
    return await request(controller.signal);
  } catch (error) {
    throw translateAzureError(error);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns what to throw; an error that is not storage's (a defect) is returned as it is. The library's error is not
 * kept as a cause: it holds the request with its signature, which must not reach a log.
 */
export function translateAzureError(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) {
    return error;
  }
  const failure = error as AzureErrorLike;
  const status = failure.statusCode;
  // Below 400 the answer came but could not be read to its end.
  if (status !== undefined && status >= 400 && status < 500 && !TRY_AGAIN_STATUSES.has(status)) {
    return new StorageRefusal(status, codeOf(failure), {
      failedIndex: failedIndexOf(failure),
      requestId: requestIdOf(failure),
    });
  }
  if (status === undefined && CREDENTIAL_ERRORS.has(failure.name ?? '')) {
    return new StorageRefusal(401, 'NoToken', { cause: error });
  }
  if (status !== undefined || failure.name === 'AbortError' || typeof failure.code === 'string') {
    return new StorageUnanswered(status === undefined ? reasonOf(failure) : `${status} ${codeOf(failure)}`, {
      retryAfterMs: retryAfterMsOf(failure),
    });
  }
  return error;
}

function codeOf(failure: AzureErrorLike): string {
  const code = failure.details?.errorCode ?? failure.details?.odataError?.code ?? failure.code;
  return typeof code === 'string' ? code : '';
}

/** In seconds, when the service says it; a date is not used by storage. */
function retryAfterMsOf(failure: AzureErrorLike): number | undefined {
  const seconds = Number(failure.response?.headers?.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

/** Of a request that was sent and not answered: `ECONNREFUSED` and the like. */
function reasonOf(failure: AzureErrorLike): string {
  return failure.name === 'AbortError' ? `no answer in ${STORAGE_REQUEST_TIMEOUT_MS} ms` : codeOf(failure);
}

/** What the operators of the service ask for. */
function requestIdOf(failure: AzureErrorLike): string | undefined {
  return failure.response?.headers?.get('x-ms-request-id');
}

/** The table service names the failed operation only at the start of its message: `2:The specified entity …`. */
function failedIndexOf(failure: AzureErrorLike): number | undefined {
  const found = /^(\d+):/.exec(failure.message ?? '');
  return found === null ? undefined : Number(found[1]);
}
