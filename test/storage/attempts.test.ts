import { describe, expect, it } from 'vitest';
import { AriusError } from '../../src/errors.ts';
import { type AttemptTiming, attemptRequest } from '../../src/storage/attempts.ts';
import { StorageRefusal, StorageUnanswered } from '../../src/storage/refusal.ts';

function recordedTiming(chance: number): { timing: AttemptTiming; waits: number[] } {
  const waits: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    waits.push(ms);
  };
  return { timing: { sleep, random: () => chance }, waits };
}

describe('attemptRequest', () => {
  it('makes an answered request once and tells it that nothing can be applied yet', async () => {
    const { timing, waits } = recordedTiming(1);
    const seen: boolean[] = [];
    const answer = await attemptRequest(timing, 'read', async (mayBeApplied) => {
      seen.push(mayBeApplied);
      return 'answer';
    });
    expect([answer, seen, waits]).toEqual(['answer', [false], []]);
  });

  it('repeats an unanswered request with full jitter, and tells it that it may be applied', async () => {
    const { timing, waits } = recordedTiming(0.5);
    const seen: boolean[] = [];
    await attemptRequest(timing, 'write', async (mayBeApplied) => {
      seen.push(mayBeApplied);
      if (seen.length < 5) {
        throw new StorageUnanswered('lost');
      }
    });
    expect(seen).toEqual([false, true, true, true, true]);
    expect(waits).toEqual([100, 200, 400, 800]);
  });

  it('waits at least as long as the service asks, within the limit', async () => {
    const { timing, waits } = recordedTiming(0);
    const asked = [3000, 999_999];
    await attemptRequest(timing, 'read', async () => {
      const retryAfterMs = asked.shift();
      if (retryAfterMs !== undefined) {
        throw new StorageUnanswered('throttled', { retryAfterMs });
      }
    });
    expect(waits).toEqual([3000, 10_000]);
  });

  it('ends after the last attempt with what was asked of what, and does not wait once more', async () => {
    const { timing, waits } = recordedTiming(1);
    const cause = new StorageUnanswered('ECONNREFUSED');
    const failure = await attemptRequest(timing, 'read photos/a', async () => {
      throw cause;
    }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(AriusError);
    expect(failure).toMatchObject({ code: 'storage-failed', cause });
    expect((failure as AriusError).message).toContain('read photos/a');
    expect((failure as AriusError).message).toContain('ECONNREFUSED');
    expect(waits).toHaveLength(4);
  });

  it.each([
    [403, 'AuthenticationFailed', 'not-allowed'],
    [401, 'NoToken', 'not-allowed'],
    [404, 'ContainerNotFound', 'not-found'],
    [409, 'BlobArchived', 'chunk-archived'],
    [409, 'BlobBeingRehydrated', 'chunk-archived'],
    [409, 'ContainerBeingDeleted', 'storage-failed'],
    [416, 'InvalidRange', 'bad-request'],
    [400, 'InvalidHeaderValue', 'storage-failed'],
  ] as const)('does not repeat a refusal: %i %s is %s', async (status, code, expected) => {
    let calls = 0;
    const failure = await attemptRequest(recordedTiming(1).timing, 'read photos/a', async () => {
      calls += 1;
      throw new StorageRefusal(status, code);
    }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: expected });
    expect((failure as AriusError).message).toBe(`read photos/a: storage answered ${status} ${code}`);
    expect(calls).toBe(1);
  });

  it('lets any other error through: it is a defect or the end of the process', async () => {
    const defect = new TypeError('defect');
    await expect(
      attemptRequest(recordedTiming(1).timing, 'read', async () => {
        throw defect;
      }),
    ).rejects.toBe(defect);
  });
});
