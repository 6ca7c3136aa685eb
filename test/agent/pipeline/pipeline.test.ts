import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allOrAbort, batches, orderedMap } from '../../../src/agent/pipeline/pipeline.ts';

const never = new AbortController().signal;

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) {
    items.push(item);
  }
  return items;
}

/** Resolves after some turns of the event loop: a slow call without a clock. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('orderedMap', () => {
  it('keeps the order of the source, whatever takes long, within its bounds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { maxLength: 30 }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 8 }),
        async (delays, concurrency, window) => {
          let running = 0;
          let taken = 0;
          let yielded = 0;
          let mostRunning = 0;
          let mostAhead = 0;
          function* source(): Generator<{ index: number; delay: number }> {
            for (const [index, delay] of delays.entries()) {
              taken++;
              mostAhead = Math.max(mostAhead, taken - yielded);
              yield { index, delay };
            }
          }
          const results: number[] = [];
          const mapped = orderedMap(source(), { concurrency, window, signal: never }, async ({ index, delay }) => {
            mostRunning = Math.max(mostRunning, ++running);
            await turns(delay);
            running--;
            return index;
          });
          for await (const index of mapped) {
            results.push(index);
            yielded++;
          }
          expect(results).toEqual(delays.map((_, index) => index));
          expect(mostRunning).toBeLessThanOrEqual(concurrency);
          // Those in the queue, one waiting to enter it, and one that has just been taken out.
          expect(mostAhead).toBeLessThanOrEqual(window + 2);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('AR-22: a failing call is thrown in its place, and nothing hangs', async () => {
    const results: number[] = [];
    const mapped = orderedMap([1, 2, 3, 4], { concurrency: 2, window: 4, signal: never }, async (n) => {
      if (n === 3) {
        throw new Error('three');
      }
      return n;
    });
    await expect(
      (async () => {
        for await (const n of mapped) {
          results.push(n);
        }
      })(),
    ).rejects.toThrow('three');
    expect(results).toEqual([1, 2]);
  });

  it('passes on a failure of the source', async () => {
    // biome-ignore lint/correctness/useYield: it fails before it yields
    async function* broken(): AsyncGenerator<number> {
      throw new Error('source');
    }
    await expect(
      collect(orderedMap(broken(), { concurrency: 1, window: 1, signal: never }, async (n) => n)),
    ).rejects.toThrow('source');
  });

  it('stops taking from the source when its consumer stops', async () => {
    let taken = 0;
    let ended = false;
    async function* source(): AsyncGenerator<number> {
      try {
        for (;;) {
          yield taken++;
        }
      } finally {
        ended = true;
      }
    }
    for await (const n of orderedMap(source(), { concurrency: 2, window: 3, signal: never }, async (x) => x)) {
      if (n === 5) {
        break;
      }
    }
    expect(ended).toBe(true);
    expect(taken).toBeLessThan(5 + 3 + 4);
  });
});

describe('batches', () => {
  it('loses nothing, keeps the order, and closes a batch at the first limit it reaches', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(10), { maxLength: 60 }),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 20 }),
        async (items, itemsMax, weightMax) => {
          async function* source(): AsyncGenerator<number> {
            yield* items;
          }
          const all = await collect(batches(source(), { itemsMax, weightMax, weigh: (n) => n }));
          expect(all.flat()).toEqual(items);
          for (const [index, batch] of all.entries()) {
            const beforeLast = batch.slice(0, -1).reduce((sum, n) => sum + n, 0);
            expect(batch.length).toBeLessThanOrEqual(itemsMax);
            expect(beforeLast).toBeLessThan(weightMax);
            const weight = batch.reduce((sum, n) => sum + n, 0);
            expect(index === all.length - 1 || batch.length === itemsMax || weight >= weightMax).toBe(true);
          }
        },
      ),
    );
  });
});

describe('allOrAbort', () => {
  it('FT-47: the first failure aborts the other stages, and is thrown after all have ended', async () => {
    const abort = new AbortController();
    let otherEnded = false;
    const other = new Promise<void>((_, reject) => {
      abort.signal.addEventListener('abort', () => {
        setImmediate(() => {
          otherEnded = true;
          reject(abort.signal.reason as Error);
        });
      });
    });
    const failure = new Error('first');
    await expect(allOrAbort([other, Promise.reject(failure)], abort)).rejects.toBe(failure);
    expect(otherEnded).toBe(true);
  });

  it('waits for all stages when none fails', async () => {
    const abort = new AbortController();
    let done = 0;
    const stage = async (): Promise<void> => {
      await turns(3);
      done++;
    };
    await allOrAbort([stage(), stage()], abort);
    expect(done).toBe(2);
    expect(abort.signal.aborted).toBe(false);
  });
});
