/**
 * A large file on its way into the repository: encoded to the spool while its bytes are hashed again, proven, created,
 * recorded. Only bytes that still are those of its content hash are uploaded.
 */

import { constants, type FileHandle, open } from 'node:fs/promises';
import { AriusError } from '../../errors.ts';
import { SINGLE_UPLOAD_BYTES_MAX } from '../../limits.ts';
import { chunkBlobName, contentTypeOf } from '../../repository/blob-names.ts';
import { formatChunkMetadata } from '../../repository/chunk-metadata.ts';
import { fileChunks } from '../files/file-chunks.ts';
import { codeOf } from '../files/system-errors.ts';
import { localPathOf } from '../state/paths.ts';
import { type ArchiveContext, type Carrier, carrierChanged, carrierFailed } from './archive-context.ts';
import { type Confirmation, commitBody, confirmationOf, NAME_TAKEN } from './commit-chunk.ts';
import type { EntryRecorder } from './entry-recorder.ts';
import { proveBody } from './prove.ts';
import type { SpooledBody } from './spool.ts';
import { uploadStaged } from './upload-staged.ts';

export async function uploadLarge(context: ArchiveContext, recorder: EntryRecorder, carrier: Carrier): Promise<void> {
  const body = await encode(context, carrier);
  if (body === undefined) {
    return;
  }
  try {
    await proveBody(context, body, carrier.contentHash, carrier.sizeBytes);
    let conflict = '';
    const confirm = async (): Promise<Confirmation> => {
      const { outcome, detail } = await recorder.record(carrier.contentHash);
      conflict = detail ?? NAME_TAKEN;
      return confirmationOf(outcome);
    };
    const { confirmation, created } =
      body.lengthBytes > SINGLE_UPLOAD_BYTES_MAX
        ? await uploadStaged(context, carrier, body, confirm)
        : await commitBody(
            context,
            chunkBlobName(carrier.contentHash),
            body,
            {
              contentType: contentTypeOf('large', context.codec.sealed),
              metadata: formatChunkMetadata({
                type: 'large',
                originalSize: carrier.sizeBytes,
                chunkSize: body.lengthBytes,
              }),
              tier: context.tier,
            },
            confirm,
          );
    settle(context, carrier, confirmation, conflict);
    if (created) {
      context.counters.chunksUploaded++;
      context.counters.bytesUploaded += body.lengthBytes;
    }
  } catch (error) {
    if (!(error instanceof AriusError) || error.code !== 'chunk-type-conflict') {
      throw error;
    }
    // Answered while its blocks were to be staged. Concerns this one content; the others go on.
    carrierFailed(context, carrier, error.message);
  } finally {
    await body.remove();
  }
}

function settle(
  context: ArchiveContext,
  carrier: Carrier,
  confirmation: Exclude<Confirmation, 'absent'>,
  conflict: string,
): void {
  switch (confirmation) {
    case 'committed':
      context.run.setContent(carrier.contentHash, 'stored');
      context.counters.entriesRecorded++;
      context.report.archived(carrier.path, 'new');
      return;
    case 'debris':
      context.run.setContent(carrier.contentHash, 'waiting');
      return;
    case 'conflict':
      carrierFailed(context, carrier, conflict);
  }
}

/** Undefined when the file is not what it was, or cannot be read: it is dealt with, and nothing is in the spool. */
async function encode(context: ArchiveContext, carrier: Carrier): Promise<SpooledBody | undefined> {
  await context.beforeCarrierRead?.(carrier.path);
  let handle: FileHandle;
  try {
    handle = await open(localPathOf(context.root, carrier.path), constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    carrierFailed(context, carrier, `it could not be read again for its upload (${codeOf(error)})`);
    return undefined;
  }
  const hash = context.hasher.start();
  let readBytes = 0;
  let readFailure: { error: unknown } | undefined;
  let body: SpooledBody;
  try {
    // A file that grew is cut off where it has changed for certain; no more of it needs to be read.
    const pieces = readThrough(handle, carrier.sizeBytes + 1, {
      onPiece(piece) {
        context.signal.throwIfAborted();
        hash.update(piece);
        readBytes += piece.byteLength;
      },
      onFailure(error) {
        readFailure = { error };
      },
    });
    body = await context.spool.write(context.codec.encodeStream(pieces));
  } catch (error) {
    // The archived file failing concerns that file alone; the spool failing ends the run.
    if (readFailure === undefined) {
      throw error;
    }
    carrierFailed(context, carrier, `it could not be read again for its upload (${codeOf(readFailure.error)})`);
    return undefined;
  } finally {
    await handle.close();
  }
  if (readBytes !== carrier.sizeBytes || hash.digest() !== carrier.contentHash) {
    await body.remove();
    carrierChanged(context, carrier);
    return undefined;
  }
  return body;
}

async function* readThrough(
  handle: FileHandle,
  lengthBytes: number,
  listener: { onPiece(bytes: Uint8Array): void; onFailure(error: unknown): void },
): AsyncGenerator<Uint8Array, void, void> {
  const pieces = fileChunks(handle, 0, lengthBytes);
  for (;;) {
    let next: IteratorResult<Uint8Array, void>;
    try {
      next = await pieces.next();
    } catch (error) {
      listener.onFailure(error);
      throw error;
    }
    if (next.done === true) {
      return;
    }
    listener.onPiece(next.value);
    yield next.value;
  }
}
