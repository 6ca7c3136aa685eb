/** Bytes of local files, read in pieces of a fixed size. */

import type { FileHandle } from 'node:fs/promises';
import { FILE_READ_BYTES } from '../../limits.ts';

/** Yields fresh buffers, which a consumer may keep. Ends early when the file has become shorter. */
export async function* fileChunks(
  handle: FileHandle,
  offsetBytes = 0,
  lengthBytes = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<Uint8Array, void, void> {
  let position = offsetBytes;
  const end = offsetBytes + lengthBytes;
  while (position < end) {
    const buffer = Buffer.allocUnsafe(Math.min(FILE_READ_BYTES, end - position));
    const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, position);
    if (bytesRead === 0) {
      return;
    }
    position += bytesRead;
    yield bytesRead === buffer.byteLength ? buffer : buffer.subarray(0, bytesRead);
  }
}

/**
 * Shows `sizeBytes` bytes, or all there are, piece by piece in one reused buffer, which the consumer must not keep. Bytes
 * beyond that size are not read: whoever calls compares the size before and after.
 */
export async function eachFileChunk(
  handle: FileHandle,
  sizeBytes: number,
  buffer: Uint8Array,
  consume: (bytes: Uint8Array, offsetBytes: number) => void,
): Promise<void> {
  for (let position = 0; position < sizeBytes; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.byteLength, sizeBytes - position), position);
    if (bytesRead === 0) {
      return;
    }
    consume(buffer.subarray(0, bytesRead), position);
    position += bytesRead;
  }
}
