/** Reading bodies to their end, and leaving them before. */

import { AriusError } from '../../errors.ts';
import { StorageUnanswered } from '../refusal.ts';

/** The whole body, which must be as long as announced: less or more is no answer at all. */
export async function collect(body: AsyncIterable<Uint8Array>, lengthBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(lengthBytes);
  let offset = 0;
  for await (const piece of body) {
    if (offset + piece.byteLength > lengthBytes) {
      throw new StorageUnanswered('a body is longer than announced');
    }
    bytes.set(piece, offset);
    offset += piece.byteLength;
  }
  if (offset !== lengthBytes) {
    throw new StorageUnanswered(`a body ended after ${offset} of ${lengthBytes} bytes`);
  }
  return bytes;
}

/** Ends a body that will not be read, so that its connection is given back. */
export async function discard(body: AsyncIterable<Uint8Array>): Promise<void> {
  await body[Symbol.asyncIterator]().return?.();
}

/** A body that breaks off while the caller reads it cannot be repeated here: the caller reads again. */
export function readableBody(body: AsyncIterable<Uint8Array>, what: string): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
      const pieces = body[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            return await pieces.next();
          } catch (error) {
            throw brokenBody(error, what);
          }
        },
        async return() {
          await pieces.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

function brokenBody(error: unknown, what: string): unknown {
  return error instanceof StorageUnanswered
    ? new AriusError('storage-failed', `${what}: ${error.message}`, 'Try again.', { cause: error })
    : error;
}
