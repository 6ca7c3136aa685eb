/** A body is uploaded only after it was decoded again, from the disk it lies on, to the hash of what was read. */

import { BodyCorruptError } from '../../codec/errors.ts';
import { AriusError } from '../../errors.ts';
import type { ArchiveContext } from './archive-context.ts';
import type { SpooledBody } from './spool.ts';

export async function proveBody(
  context: Pick<ArchiveContext, 'codec' | 'hasher'>,
  body: SpooledBody,
  plainHash: string,
  plainBytes: number,
): Promise<void> {
  const hash = context.hasher.start();
  try {
    for await (const bytes of context.codec.decodeStream(body.open(), plainBytes)) {
      hash.update(bytes);
    }
  } catch (error) {
    if (error instanceof BodyCorruptError) {
      throw unproven(plainHash, error);
    }
    throw error;
  }
  if (hash.digest() !== plainHash) {
    throw unproven(plainHash, undefined);
  }
}

function unproven(plainHash: string, cause: unknown): AriusError {
  return new AriusError(
    'internal',
    `The body prepared for ${plainHash} does not decode to what was read; it was not uploaded.`,
    'The memory or the disk of this machine may be faulty: check them, or choose another folder with --spool.',
    { cause },
  );
}
