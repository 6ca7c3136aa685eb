/**
 * Bodies too large for one request: their blocks go to a staging name, and the service assembles the chunk, which the
 * agent itself may not write in pieces.
 */

import { createHash } from 'node:crypto';
import pMap from 'p-map';
import { v7 as uuidv7 } from 'uuid';
import { AriusError } from '../../errors.ts';
import { BODY_UPLOAD_ATTEMPTS_MAX, STAGED_BLOCK_BYTES, STAGED_BLOCK_WORKERS } from '../../limits.ts';
import type { BlobBody } from '../transport/blob-client.ts';
import type { ArchiveContext, Carrier } from './archive-context.ts';
import type { Confirmation } from './commit-chunk.ts';
import type { SpooledBody } from './spool.ts';

export async function uploadStaged(
  context: ArchiveContext,
  carrier: Carrier,
  body: SpooledBody,
  confirm: () => Promise<Confirmation>,
): Promise<{ confirmation: Exclude<Confirmation, 'absent'>; created: boolean }> {
  for (let attempt = 1; attempt <= BODY_UPLOAD_ATTEMPTS_MAX; attempt++) {
    const outcome = await stageAndAssemble(context, carrier, body);
    if (outcome === 'debris') {
      return { confirmation: 'debris', created: false };
    }
    const confirmation = await confirm();
    if (confirmation !== 'absent') {
      return { confirmation, created: outcome === 'created' };
    }
  }
  throw cannotStage(carrier);
}

/** `not-finished` is what the service answers while another writer's unfinished upload is in the way. */
async function stageAndAssemble(
  context: ArchiveContext,
  carrier: Carrier,
  body: SpooledBody,
): Promise<'created' | 'exists' | 'debris'> {
  try {
    const grant = await context.api.stagingGrant(carrier.contentHash, context.runId);
    if (grant.outcome === 'exists') {
      return 'exists';
    }
    await stage(context, carrier, grant, body);
    const operation = await context.api.commitChunk(carrier.contentHash, {
      runId: context.runId,
      stagingName: grant.stagingName,
      originalSize: carrier.sizeBytes,
      chunkSize: body.lengthBytes,
    });
    await context.api.waitFor(operation);
    return 'created';
  } catch (error) {
    if (error instanceof AriusError && error.code === 'not-finished') {
      return 'debris';
    }
    throw error;
  }
}

interface StagingGrant {
  readonly stagingName: string;
  readonly url: string;
}

async function stage(
  context: ArchiveContext,
  carrier: Carrier,
  firstGrant: StagingGrant,
  body: SpooledBody,
): Promise<void> {
  let grant = Promise.resolve(firstGrant);
  /** A grant lives for an hour, a slow upload for days: the staged blocks stay, only the signature is renewed. */
  async function withGrant(request: (url: string) => Promise<'staged' | 'refused'>): Promise<void> {
    for (let attempt = 1; attempt <= BODY_UPLOAD_ATTEMPTS_MAX; attempt++) {
      const used = grant;
      const { url, stagingName } = await used;
      if ((await request(url)) === 'staged') {
        return;
      }
      // Blocks in flight together meet the same refusal; the first of them renews for all.
      if (grant === used) {
        grant = renew(context, carrier, stagingName);
      }
    }
    throw cannotStage(carrier);
  }

  // Ids have one length within a blob, and differ between attempts, so that blocks of two attempts never mix.
  const attemptId = uuidv7();
  const blocks = Array.from({ length: Math.ceil(body.lengthBytes / STAGED_BLOCK_BYTES) }, (_, index) => ({
    id: Buffer.from(`${attemptId}-${String(index).padStart(6, '0')}`).toString('base64'),
    offsetBytes: index * STAGED_BLOCK_BYTES,
  }));
  await pMap(
    blocks,
    async ({ id, offsetBytes }) => {
      const block = await blockOf(body, offsetBytes, Math.min(STAGED_BLOCK_BYTES, body.lengthBytes - offsetBytes));
      await withGrant((url) => context.blobs.stageBlock(url, id, block));
    },
    { concurrency: STAGED_BLOCK_WORKERS, signal: context.signal },
  );
  const ids = blocks.map(({ id }) => id);
  await withGrant((url) => context.blobs.commitBlockList(url, ids));
}

async function renew(context: ArchiveContext, carrier: Carrier, stagingName: string): Promise<StagingGrant> {
  const renewed = await context.api.stagingGrant(carrier.contentHash, context.runId);
  if (renewed.outcome !== 'granted' || renewed.stagingName !== stagingName) {
    throw cannotStage(carrier);
  }
  return renewed;
}

async function blockOf(body: SpooledBody, offsetBytes: number, lengthBytes: number): Promise<BlobBody> {
  const md5 = createHash('md5');
  for await (const bytes of body.open(offsetBytes, lengthBytes)) {
    md5.update(bytes);
  }
  return { lengthBytes, md5: md5.digest('base64'), open: () => body.open(offsetBytes, lengthBytes) };
}

function cannotStage(carrier: Carrier): AriusError {
  return new AriusError(
    'storage-failed',
    `chunks/${carrier.contentHash} could not be staged in ${BODY_UPLOAD_ATTEMPTS_MAX} attempts.`,
    'Check that the storage account can be reached from here, then run the same command again.',
  );
}
