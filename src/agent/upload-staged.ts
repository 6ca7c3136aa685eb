/**
 * Bodies too large for one request: their blocks go to a staging name, and the service assembles the chunk, which the
 * agent itself may not write in pieces.
 */

import { createHash } from 'node:crypto';
import pMap from 'p-map';
import { v7 as uuidv7 } from 'uuid';
import { AriusError } from '../errors.ts';
import { BODY_UPLOAD_ATTEMPTS_MAX, STAGED_BLOCK_BYTES, STAGED_BLOCK_WORKERS } from '../limits.ts';
import type { ArchiveContext, Carrier } from './archive-context.ts';
import type { BlobBody } from './blob-client.ts';
import type { Confirmation } from './commit-chunk.ts';
import type { SpooledBody } from './spool.ts';

export async function uploadStaged(
  context: ArchiveContext,
  carrier: Carrier,
  body: SpooledBody,
  confirm: () => Promise<Confirmation>,
): Promise<{ confirmation: Exclude<Confirmation, 'absent'>; created: boolean }> {
  for (let attempt = 1; attempt <= BODY_UPLOAD_ATTEMPTS_MAX; attempt++) {
    const grant = await context.api.stagingGrant(carrier.contentHash, context.runId);
    let created = false;
    if (grant.outcome === 'granted') {
      if (!(await stage(context, grant.url, body))) {
        continue;
      }
      const operation = await context.api.commitChunk(carrier.contentHash, {
        runId: context.runId,
        stagingName: grant.stagingName,
        originalSize: carrier.sizeBytes,
        chunkSize: body.lengthBytes,
      });
      await context.api.waitFor(operation);
      created = true;
    }
    const confirmation = await confirm();
    if (confirmation !== 'absent') {
      return { confirmation, created };
    }
  }
  throw new AriusError(
    'storage-failed',
    `chunks/${carrier.contentHash} could not be staged in ${BODY_UPLOAD_ATTEMPTS_MAX} attempts.`,
    'Check that the storage account can be reached from here, then run the same command again.',
  );
}

/** False when the grant was refused, for instance because it expired during a slow upload. */
async function stage(context: ArchiveContext, url: string, body: SpooledBody): Promise<boolean> {
  // Ids have one length within a blob, and differ between attempts, so that blocks of two attempts never mix.
  const attemptId = uuidv7();
  const blocks = Array.from({ length: Math.ceil(body.lengthBytes / STAGED_BLOCK_BYTES) }, (_, index) => ({
    id: Buffer.from(`${attemptId}-${String(index).padStart(6, '0')}`).toString('base64'),
    offsetBytes: index * STAGED_BLOCK_BYTES,
  }));
  const outcomes = await pMap(
    blocks,
    async ({ id, offsetBytes }) => {
      const lengthBytes = Math.min(STAGED_BLOCK_BYTES, body.lengthBytes - offsetBytes);
      return context.blobs.stageBlock(url, id, await blockOf(body, offsetBytes, lengthBytes));
    },
    { concurrency: STAGED_BLOCK_WORKERS },
  );
  if (outcomes.includes('refused')) {
    return false;
  }
  return (
    (await context.blobs.commitBlockList(
      url,
      blocks.map(({ id }) => id),
    )) === 'staged'
  );
}

async function blockOf(body: SpooledBody, offsetBytes: number, lengthBytes: number): Promise<BlobBody> {
  const md5 = createHash('md5');
  for await (const bytes of body.open(offsetBytes, lengthBytes)) {
    md5.update(bytes);
  }
  return { lengthBytes, md5: md5.digest('base64'), open: () => body.open(offsetBytes, lengthBytes) };
}
