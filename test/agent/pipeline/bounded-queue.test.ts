import { describe, expect, it } from 'vitest';
import { BoundedQueue } from '../../../src/agent/pipeline/bounded-queue.ts';

const never = new AbortController().signal;
const turns = async (count = 10): Promise<void> => {
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
};

describe('BoundedQueue', () => {
  it('delivers in order, and ends after what was queued when it is closed', async () => {
    const queue = new BoundedQueue<number>(10, never);
    await queue.push(1);
    await queue.push(2);
    queue.close();
    const seen: number[] = [];
    for await (const item of queue) {
      seen.push(item);
    }
    expect(seen).toEqual([1, 2]);
  });

  it('invariant 7: a producer that runs ahead waits, and never more than the capacity is held', async () => {
    const queue = new BoundedQueue<number>(3, never);
    let pushed = 0;
    let most = 0;
    const producing = (async () => {
      for (let i = 0; i < 50; i++) {
        await queue.push(i);
        pushed++;
        most = Math.max(most, queue.length);
      }
      queue.close();
    })();
    await turns();
    expect(pushed).toBe(3);
    let received = 0;
    for await (const item of queue) {
      expect(item).toBe(received++);
      await turns(2);
    }
    await producing;
    expect(received).toBe(50);
    expect(most).toBeLessThanOrEqual(3);
  });

  it('gives each item to one of several consumers', async () => {
    const queue = new BoundedQueue<number>(2, never);
    const seen: number[] = [];
    const consume = async (): Promise<void> => {
      for await (const item of queue) {
        seen.push(item);
        await turns(1);
      }
    };
    const consumers = [consume(), consume(), consume()];
    for (let i = 0; i < 20; i++) {
      await queue.push(i);
    }
    queue.close();
    await Promise.all(consumers);
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it('releases both sides with the reason when the run is aborted', async () => {
    const abort = new AbortController();
    const full = new BoundedQueue<number>(1, abort.signal);
    await full.push(1);
    const pushing = full.push(2);
    const empty = new BoundedQueue<number>(1, abort.signal);
    const taking = empty[Symbol.asyncIterator]().next();
    const reason = new Error('stopped');
    abort.abort(reason);
    await expect(pushing).rejects.toBe(reason);
    await expect(taking).rejects.toBe(reason);
  });

  it('refuses an item after it was closed', async () => {
    const queue = new BoundedQueue<number>(1, never);
    queue.close();
    await expect(queue.push(1)).rejects.toThrow('closed');
  });
});
