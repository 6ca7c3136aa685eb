import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BodyCorruptError } from './errors.ts';

/**
 * Runs bytes through one of Node's transforms, with backpressure both ways. Ends normally only when the transform has
 * taken all input and given all output; ending early releases both the transform and the source.
 */
export async function* through(source: AsyncIterable<Uint8Array>, transform: Duplex): AsyncGenerator<Uint8Array> {
  const pumped = pipeline(source, transform);
  // The failure is reported where the output is read; this only keeps it from being reported twice.
  pumped.catch(() => undefined);
  try {
    for await (const piece of transform) {
      yield piece as Uint8Array;
    }
    await pumped;
  } catch (error) {
    throw isDamage(error) ? new BodyCorruptError('The compressed body is damaged', { cause: error }) : error;
  } finally {
    transform.destroy();
    await pumped.catch(() => undefined);
  }
}

/** What the decoders say about their input, e.g. `Z_DATA_ERROR` or `ZSTD_error_checksum_wrong`; not that memory is short. */
function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(Z_|ZSTD_)/.test(code) && !/mem/i.test(code);
}
