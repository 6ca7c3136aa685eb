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
    throw isZlibError(error) ? new BodyCorruptError('The compressed body is damaged', { cause: error }) : error;
  } finally {
    transform.destroy();
    await pumped.catch(() => undefined);
  }
}

/** Errors of zlib and zstd carry a numeric `errno` and a code such as `Z_DATA_ERROR` or `ZSTD_error_checksum_wrong`. */
export function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && /^(Z_|ZSTD_)/.test(error.code);
}
