import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRateLimit } from '../../../src/agent/transport/rate-limit.ts';
import { backoffMs, sleep } from '../../../src/agent/transport/retry.ts';
import { HTTP_BACKOFF_FIRST_MS, HTTP_BACKOFF_MS_MAX } from '../../../src/limits.ts';

describe('backoffMs', () => {
  it('doubles its ceiling up to a maximum, with jitter over the whole of it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
        const ceiling = Math.min(HTTP_BACKOFF_MS_MAX, HTTP_BACKOFF_FIRST_MS * 2 ** (attempt - 1));
        expect(backoffMs(attempt, undefined, () => random)).toBeCloseTo(ceiling * random, 6);
      }),
    );
  });

  it('waits at least as long as the server asks, but never longer than the maximum', () => {
    expect(backoffMs(1, 3, () => 0)).toBe(3000);
    expect(backoffMs(1, 1e9, () => 0)).toBe(HTTP_BACKOFF_MS_MAX);
  });
});

describe('sleep', () => {
  it('ends with the reason of the abort', async () => {
    const abort = new AbortController();
    const reason = new Error('stopped');
    const sleeping = sleep(60_000, abort.signal);
    abort.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
  });
});

describe('createRateLimit', () => {
  it('lets no more bytes pass than the limit allows, over all senders together', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 10_000 }),
        async (sizes, bytesPerSecond) => {
          let nowMs = 0;
          let sent = 0;
          const limit = createRateLimit({
            bytesPerSecond,
            signal: new AbortController().signal,
            nowMs: () => nowMs,
            async sleep(durationMs) {
              nowMs += durationMs;
            },
          });
          for (const size of sizes) {
            await limit(new Uint8Array(size));
            // What was let through before took its time.
            expect(sent / bytesPerSecond).toBeLessThanOrEqual(nowMs / 1000 + 1e-6);
            sent += size;
          }
        },
      ),
    );
  });
});
