/**
 * Holds uploads to a number of bytes per second, over all of them together. Time is handed out in advance: whoever sends
 * `n` bytes moves the moment of the next send by the time that `n` bytes take.
 */

import { type Sleep, sleep } from './retry.ts';

export function createRateLimit(options: {
  readonly bytesPerSecond: number;
  readonly signal: AbortSignal;
  readonly sleep?: Sleep;
  nowMs?(): number;
}): (bytes: Uint8Array) => Promise<void> {
  const nowMs = options.nowMs ?? (() => performance.now());
  let freeAtMs = 0;
  return async (bytes) => {
    const now = nowMs();
    const startMs = Math.max(now, freeAtMs);
    freeAtMs = startMs + (bytes.byteLength / options.bytesPerSecond) * 1000;
    if (startMs > now) {
      await (options.sleep ?? sleep)(startMs - now, options.signal);
    }
  };
}
