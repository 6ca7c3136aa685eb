/**
 * Uploads the nodes that the newest snapshot does not hold, children before parents. A conflict means that the node is
 * there already, which is all that is wanted: its name is the hash of its content.
 */

import pMap from 'p-map';
import { AriusError } from '../../errors.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { BODY_UPLOAD_ATTEMPTS_MAX, FILETREE_MEMORY_BYTES_MAX, FILETREE_UPLOAD_WORKERS } from '../../limits.ts';
import { contentTypeOf, filetreeBlobName } from '../../repository/blob-names.ts';
import { type BlobBody, bodyOf } from '../transport/blob-client.ts';
import type { ArchiveContext } from './archive-context.ts';
import { nodePages } from './filetree-builder.ts';
import { proveBody } from './prove.ts';
import type { SpooledBody } from './spool.ts';

export async function uploadFiletrees(context: ArchiveContext, onProgress?: () => void): Promise<void> {
  // Twin directories have one node, which is uploaded once.
  const inFlight = new Set<FileTreeHash>();
  await pMap(
    nodesToUpload(context),
    async ({ directoryId, hash, nodeBytes }) => {
      if (inFlight.has(hash) || context.run.isNodeUploaded(hash)) {
        return;
      }
      inFlight.add(hash);
      try {
        await uploadNode(context, directoryId, hash, nodeBytes);
        context.run.addUploadedNode(hash);
      } finally {
        inFlight.delete(hash);
      }
      onProgress?.();
    },
    { concurrency: FILETREE_UPLOAD_WORKERS, signal: context.signal },
  );
}

interface NodeToUpload {
  readonly directoryId: number;
  readonly hash: FileTreeHash;
  readonly nodeBytes: number;
}

function* nodesToUpload(context: ArchiveContext): Generator<NodeToUpload, void, void> {
  for (let directoryId = context.run.lastDirectoryId; directoryId >= 1; directoryId--) {
    const { treeHash, present, nodeBytes } = context.run.directory(directoryId);
    if (treeHash !== undefined && !present) {
      yield { directoryId, hash: treeHash, nodeBytes };
    }
  }
}

async function uploadNode(
  context: ArchiveContext,
  directoryId: number,
  hash: FileTreeHash,
  nodeBytes: number,
): Promise<void> {
  if (nodeBytes <= FILETREE_MEMORY_BYTES_MAX) {
    const text = Buffer.concat([...nodePages(context.run, directoryId)]);
    await createNode(context, hash, bodyOf(await context.codec.encode(text)));
    return;
  }
  const body: SpooledBody = await context.spool.write(context.codec.encodeStream(pagesOf(context, directoryId)));
  try {
    await proveBody(context, body, hash, nodeBytes);
    await createNode(context, hash, body);
  } finally {
    await body.remove();
  }
}

async function* pagesOf(context: ArchiveContext, directoryId: number): AsyncGenerator<Uint8Array, void, void> {
  yield* nodePages(context.run, directoryId);
}

async function createNode(context: ArchiveContext, hash: FileTreeHash, body: BlobBody): Promise<void> {
  const name = filetreeBlobName(hash);
  for (let attempt = 1; attempt <= BODY_UPLOAD_ATTEMPTS_MAX; attempt++) {
    const outcome = await context.blobs.create(await context.api.createGrant(name), body, {
      contentType: contentTypeOf('filetree', context.codec.sealed),
      metadata: {},
      tier: 'cool',
    });
    if (outcome === 'created') {
      context.counters.filetreesUploaded++;
      context.counters.bytesUploaded += body.lengthBytes;
    }
    if (outcome === 'created' || outcome === 'conflict') {
      return;
    }
  }
  throw new AriusError(
    'storage-failed',
    `${name} could not be created in ${BODY_UPLOAD_ATTEMPTS_MAX} attempts.`,
    'Check that the storage account can be reached from here, then run the same command again.',
  );
}
