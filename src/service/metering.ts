/**
 * Counts the storage requests of one piece of work, however many others run in the same process: each request is counted
 * for the work in whose asynchronous context it is made.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { countingStorage, type RequestClass } from '../storage/counting.ts';
import type { Storage } from '../storage/ports.ts';

export type RequestCounts = Partial<Record<RequestClass, number>>;

const present = new AsyncLocalStorage<RequestCounts>();

export function meteredStorage(storage: Storage): Storage {
  return countingStorage(storage, (requestClass) => {
    const counts = present.getStore();
    if (counts !== undefined) {
      counts[requestClass] = (counts[requestClass] ?? 0) + 1;
    }
  }).storage;
}

/** Runs the work; `counts` is filled while it runs and complete when it ends, also when it fails. */
export async function metered<T>(counts: RequestCounts, work: () => Promise<T>): Promise<T> {
  return await present.run(counts, work);
}
