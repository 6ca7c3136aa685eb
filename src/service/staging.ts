/** The scratch container. Whatever a job leaves there has a lifetime of days; an ended job clears its own at once. */

import pMap from 'p-map';
import { STAGING_DELETE_WORKERS } from '../limits.ts';
import type { BlobContainer } from '../storage/ports.ts';

/** One page is enough for any job; what is beyond it is left to the lifetime rule of the container. */
export async function clearStaging(staging: BlobContainer, prefix: string): Promise<void> {
  const page = await staging.listPage(prefix);
  await pMap(page.blobs, async (blob) => await staging.delete(blob.name, { etag: blob.etag }), {
    concurrency: STAGING_DELETE_WORKERS,
  });
}
