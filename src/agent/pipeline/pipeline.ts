/**
 * How stages run side by side: in order where order matters, a bounded number at a time, and all of them stopped by the
 * first failure.
 */

import pLimit from 'p-limit';
import { BoundedQueue } from './bounded-queue.ts';

export interface OrderedMapOptions {
  readonly concurrency: number;
  /** Items taken from the source and not yet yielded, at most. */
  readonly window: number;
  readonly signal: AbortSignal;
}

/**
 * Maps with up to `concurrency` calls at a time and yields the results in the order of the source. It works ahead of
 * its consumer, but never by more than `window` items.
 */
export async function* orderedMap<T, R>(
  source: AsyncIterable<T> | Iterable<T>,
  options: OrderedMapOptions,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R, void, void> {
  const stop = new AbortController();
  const results = new BoundedQueue<Promise<R>>(options.window, AbortSignal.any([options.signal, stop.signal]));
  const limit = pLimit(options.concurrency);

  async function pump(): Promise<void> {
    for await (const item of source) {
      const result = limit(() => map(item));
      // A failure is thrown where the result is awaited, in order; until then it is not an unhandled one.
      result.catch(() => undefined);
      await results.push(result);
    }
    results.close();
  }

  const pumping = pump();
  pumping.catch((error: unknown) => stop.abort(error));
  try {
    for await (const result of results) {
      yield await result;
    }
    await pumping;
  } finally {
    stop.abort(new Error('the consumer has stopped'));
    await pumping.catch(() => undefined);
  }
}

/** Groups consecutive items until a group holds `itemsMax` of them, or `weightMax` by weight. */
export async function* batches<T>(
  source: AsyncIterable<T>,
  limits: { readonly itemsMax: number; readonly weightMax: number; weigh(item: T): number },
): AsyncGenerator<T[], void, void> {
  let batch: T[] = [];
  let weight = 0;
  for await (const item of source) {
    batch.push(item);
    weight += limits.weigh(item);
    if (batch.length >= limits.itemsMax || weight >= limits.weightMax) {
      yield batch;
      batch = [];
      weight = 0;
    }
  }
  if (batch.length > 0) {
    yield batch;
  }
}

/** Runs `count` copies of a worker, which usually take from one queue. Their failures are `allOrAbort`'s to handle. */
export function workers(count: number, work: () => Promise<void>): Promise<void>[] {
  return Array.from({ length: count }, () => work());
}

/**
 * Waits for all stages. The first failure aborts the others, and is thrown only after every stage has ended: nothing
 * still writes when the caller cleans up.
 */
export async function allOrAbort(stages: readonly Promise<unknown>[], abort: AbortController): Promise<void> {
  let first: { error: unknown } | undefined;
  await Promise.all(
    stages.map((stage) =>
      stage.catch((error: unknown) => {
        first ??= { error };
        abort.abort(error);
      }),
    ),
  );
  if (first !== undefined) {
    throw first.error;
  }
}
