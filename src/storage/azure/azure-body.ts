/**
 * The body of an answer as an async iterable that fails in our vocabulary, gives up when it stalls, and gives its
 * connection back when the reader leaves early, also before the first piece.
 */

import type { Readable } from 'node:stream';
import { STORAGE_BODY_STALL_MS } from '../../limits.ts';
import { StorageUnanswered } from '../refusal.ts';
import { translateAzureError } from './azure-errors.ts';

export function bodyOf(stream: Readable): AsyncIterable<Uint8Array> {
  // A connection may break while nobody reads; the error is seen by the next read, it must not end the process.
  stream.on('error', () => {});
  return {
    [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
      const pieces: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
      return {
        async next() {
          const stalled = setTimeout(
            () => stream.destroy(new StorageUnanswered(`No bytes came for ${STORAGE_BODY_STALL_MS} ms`)),
            STORAGE_BODY_STALL_MS,
          );
          try {
            return await pieces.next();
          } catch (error) {
            throw translateAzureError(error);
          } finally {
            clearTimeout(stalled);
          }
        },
        async return() {
          stream.destroy();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
