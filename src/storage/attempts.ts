/**
 * The one retry loop of the storage layer: only a request that was not answered is made again, a bounded number of
 * times, with full jitter between attempts. The request learns whether an earlier attempt may have been applied, since
 * only then may a failed condition be our own doing.
 */

import { AriusError } from '../errors.ts';
import { STORAGE_ATTEMPTS_MAX, STORAGE_RETRY_DELAY_BASE_MS, STORAGE_RETRY_DELAY_MS_MAX } from '../limits.ts';
import { refusalToAriusError, StorageRefusal, StorageUnanswered } from './refusal.ts';

/** Waiting and chance, injectable so that a simulation is deterministic. */
export interface AttemptTiming {
  sleep(ms: number): Promise<void>;
  /** In [0, 1). */
  random(): number;
}

/**
 * Runs one logical request. `once` gets `mayBeApplied`: true when an earlier attempt was not answered.
 * Throws an AriusError for a refusal that `once` lets through, and when the attempts are used up.
 */
export async function attemptRequest<T>(
  timing: AttemptTiming,
  what: string,
  once: (mayBeApplied: boolean) => Promise<T>,
): Promise<T> {
  let unanswered: StorageUnanswered | undefined;
  for (let attempt = 0; attempt < STORAGE_ATTEMPTS_MAX; attempt += 1) {
    try {
      return await once(unanswered !== undefined);
    } catch (error) {
      if (error instanceof StorageRefusal) {
        throw refusalToAriusError(error, what);
      }
      if (!(error instanceof StorageUnanswered)) {
        throw error;
      }
      unanswered = error;
    }
    if (attempt < STORAGE_ATTEMPTS_MAX - 1) {
      await timing.sleep(retryDelayMs(timing, attempt, unanswered));
    }
  }
  throw new AriusError(
    'storage-failed',
    `${what}: no answer from storage after ${STORAGE_ATTEMPTS_MAX} attempts (${unanswered?.message ?? ''})`,
    'Check the connection to the storage account and try again.',
    { cause: unanswered },
  );
}

function retryDelayMs(timing: AttemptTiming, attempt: number, unanswered: StorageUnanswered): number {
  const ceiling = Math.min(STORAGE_RETRY_DELAY_BASE_MS * 2 ** attempt, STORAGE_RETRY_DELAY_MS_MAX);
  const asked = Math.min(unanswered.retryAfterMs ?? 0, STORAGE_RETRY_DELAY_MS_MAX);
  return asked + timing.random() * ceiling;
}
