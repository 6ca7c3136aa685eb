/**
 * Encoded bodies on their way to storage: temporary files, so that memory does not grow with what is uploaded, a body
 * can be proven before it is sent, and sent again. What is left by a crash lies in the run folder, which the next start
 * removes (run-folder.ts).
 */

import { createHash } from 'node:crypto';
import { open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AriusError } from '../../errors.ts';
import { fileChunks } from '../files/file-chunks.ts';
import type { BlobBody } from '../transport/blob-client.ts';

export class SpooledBody implements BlobBody {
  readonly path: string;
  readonly lengthBytes: number;
  readonly md5: string;

  constructor(path: string, lengthBytes: number, md5: string) {
    this.path = path;
    this.lengthBytes = lengthBytes;
    this.md5 = md5;
  }

  async *open(offsetBytes = 0, lengthBytes = this.lengthBytes): AsyncGenerator<Uint8Array, void, void> {
    const handle = await open(this.path, 'r');
    try {
      yield* fileChunks(handle, offsetBytes, lengthBytes);
    } finally {
      await handle.close();
    }
  }

  async remove(): Promise<void> {
    await unlink(this.path).catch(() => undefined);
  }
}

export class Spool {
  readonly #directory: string;
  #next = 1;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes the whole body, or leaves nothing behind. A full disk is `disk-full`. */
  async write(source: AsyncIterable<Uint8Array>): Promise<SpooledBody> {
    const path = join(this.#directory, `body-${this.#next++}`);
    const md5 = createHash('md5');
    let lengthBytes = 0;
    try {
      const handle = await open(path, 'wx', 0o600);
      try {
        for await (const bytes of source) {
          md5.update(bytes);
          await writeAll(handle, bytes);
          lengthBytes += bytes.byteLength;
        }
      } finally {
        await handle.close();
      }
    } catch (error) {
      await unlink(path).catch(() => undefined);
      throw spoolError(error, this.#directory);
    }
    return new SpooledBody(path, lengthBytes, md5.digest('base64'));
  }
}

async function writeAll(
  handle: { write(bytes: Uint8Array, offset: number, length: number): Promise<{ bytesWritten: number }> },
  bytes: Uint8Array,
): Promise<void> {
  let offset = 0;
  while (offset < bytes.byteLength) {
    // A nearly full disk may take a part of the bytes and refuse the rest with the next call.
    const { bytesWritten } = await handle.write(bytes, offset, bytes.byteLength - offset);
    offset += bytesWritten;
  }
}

/** A full disk, a quota, or (SQLite) "database or disk is full" become one error; all else passes unchanged. */
export function spoolError(error: unknown, directory: string): unknown {
  const { code, errcode } = error as { code?: string; errcode?: number };
  if (code === 'ENOSPC' || code === 'EDQUOT' || errcode === SQLITE_FULL) {
    return new AriusError(
      'disk-full',
      `There is no space left in ${directory}, where a run keeps its temporary files.`,
      'Make room, or choose another folder with --spool, then run the same command again.',
      { cause: error },
    );
  }
  return error;
}

const SQLITE_FULL = 13;
