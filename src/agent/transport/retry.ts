/** Waiting between attempts: exponential, with full jitter, so that many agents do not return at the same moment. */

import { setTimeout as delay } from 'node:timers/promises';
import { HTTP_BACKOFF_FIRST_MS, HTTP_BACKOFF_MS_MAX } from '../../limits.ts';

export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

/** Rejects with the signal's own reason, not with a bare AbortError. */
export const sleep: Sleep = async (durationMs, signal) => {
  try {
    await delay(durationMs, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
};

/** `attempt` counts from 1. What the server asked for is the least we wait. */
export function backoffMs(
  attempt: number,
  retryAfterSeconds: number | undefined,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(HTTP_BACKOFF_MS_MAX, HTTP_BACKOFF_FIRST_MS * 2 ** (attempt - 1));
  return Math.max(ceiling * random(), Math.min(retryAfterSeconds ?? 0, HTTP_BACKOFF_MS_MAX / 1000) * 1000);
}
