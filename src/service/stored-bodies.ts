/**
 * Reading a body and saying which blob it was when it cannot be read. The passphrase was proven when the repository was
 * opened, so a body that it does not open is a damaged one.
 */

import type { BodyCodec } from '../codec/body-codec.ts';
import { BodyCorruptError } from '../codec/errors.ts';
import { AriusError } from '../errors.ts';

/** Room for the envelope and for content that does not compress. */
const STORED_OVERHEAD_BYTES = 64 * 1024;

/** How long a stored body may be when what it decodes to is bounded. */
export function storedBytesMax(decodedBytesMax: number): number {
  return decodedBytesMax + Math.ceil(decodedBytesMax / 1024) + STORED_OVERHEAD_BYTES;
}

/** @throws AriusError `blob-corrupt` */
export async function decodeStored(
  codec: BodyCodec,
  blobName: string,
  body: Uint8Array,
  decodedBytesMax: number,
): Promise<Uint8Array> {
  return await namingBlob(blobName, async () => await codec.decode(body, decodedBytesMax));
}

/** Runs a reader of one blob; whatever is wrong with the blob is reported under its name. */
export async function namingBlob<T>(blobName: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof BodyCorruptError || (error instanceof AriusError && error.code === 'blob-corrupt')) {
      throw blobCorrupt(blobName, error);
    }
    throw error;
  }
}

function blobCorrupt(blobName: string, cause: Error): AriusError {
  return new AriusError(
    'blob-corrupt',
    `${blobName}: ${cause.message}`,
    'Put back this blob from a copy: archiving again does not replace it.',
    { cause },
  );
}
