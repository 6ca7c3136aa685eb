/**
 * Brings one proven body under its name. The upload is conditional and decides by itself; whatever it answered, what
 * counts is what the service then finds under the name.
 */

import type { EntryResult } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { BODY_UPLOAD_ATTEMPTS_MAX } from '../../limits.ts';
import type { BlobBody, PutBlobOptions } from '../transport/blob-client.ts';
import type { ArchiveContext } from './archive-context.ts';

/**
 * `committed`: a chunk of the wanted kind is there. `debris`: another writer's unfinished upload, too young to remove.
 * `conflict`: a chunk of another kind, which stays.
 */
export type Confirmation = 'committed' | 'debris' | 'conflict' | 'absent';

/** Why a content or a tar cannot be stored, where the service does not say it more exactly. */
export const NAME_TAKEN = 'another kind of chunk is stored under its name';

export async function commitBody(
  context: ArchiveContext,
  name: string,
  body: BlobBody,
  options: PutBlobOptions,
  confirm: () => Promise<Confirmation>,
): Promise<{ confirmation: Exclude<Confirmation, 'absent'>; created: boolean }> {
  for (let attempt = 1; attempt <= BODY_UPLOAD_ATTEMPTS_MAX; attempt++) {
    const outcome = await context.blobs.create(await context.api.createGrant(name), body, options);
    if (outcome === 'refused') {
      continue;
    }
    // Also after a conflict, and when no answer came: the service may look, the agent may not.
    const confirmation = await confirm();
    if (confirmation !== 'absent') {
      return { confirmation, created: outcome === 'created' };
    }
  }
  throw new AriusError(
    'storage-failed',
    `${name} could not be created in ${BODY_UPLOAD_ATTEMPTS_MAX} attempts.`,
    'Check that the storage account can be reached from here, then run the same command again.',
  );
}

/** The outcomes of the contract, `recorded` as what it means for the chunk. */
export function confirmationOf(outcome: EntryResult['outcome']): Confirmation {
  return outcome === 'recorded' ? 'committed' : outcome;
}
