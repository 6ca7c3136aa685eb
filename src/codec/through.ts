import type { Duplex } from 'node:stream';
import { BodyCorruptError } from './errors.ts';

/**
 * Runs bytes through one of Node's transforms, with backpressure both ways. Ends normally only when the transform has
 * taken all input and given all output; however it ends, transform and source have been released by then.
 */
export async function* through(source: AsyncIterable<Uint8Array>, transform: Duplex): AsyncGenerator<Uint8Array> {
  // An error is thrown by the reading loop below, or nobody is left who wants to know.
  transform.on('error', () => undefined);
  const pumping = pump(source, transform);
  try {
    for await (const piece of transform) {
      yield piece as Uint8Array;
    }
    if (!(await pumping)) {
      throw new BodyCorruptError('Bytes follow the compressed body');
    }
  } catch (error) {
    throw isDamage(error) ? new BodyCorruptError('The compressed body is damaged', { cause: error }) : error;
  } finally {
    transform.destroy();
    await pumping;
  }
}

/** Writes all of the source; false when the transform ended before it, or the source failed (which ends the transform). */
async function pump(source: AsyncIterable<Uint8Array>, transform: Duplex): Promise<boolean> {
  try {
    for await (const piece of source) {
      if (!transform.write(piece)) {
        await drained(transform);
      }
      if (transform.destroyed) {
        return false;
      }
    }
    transform.end();
    return true;
  } catch (error) {
    transform.destroy(error as Error);
    return false;
  }
}

/** A destroyed transform never drains, but it closes. */
async function drained(transform: Duplex): Promise<void> {
  if (transform.destroyed) {
    return;
  }
  await new Promise<void>((resolve) => {
    const go = (): void => {
      transform.off('drain', go).off('close', go);
      resolve();
    };
    transform.on('drain', go).on('close', go);
  });
}

/** What the decoders say about their input, e.g. `Z_DATA_ERROR` or `ZSTD_error_checksum_wrong`; not that memory is short. */
function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(Z_|ZSTD_)/.test(code) && !/mem/i.test(code);
}
