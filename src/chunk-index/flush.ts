/**
 * Flush of one root: pending rows become shard entries. Idempotent, and safe when it runs twice or late: it works under
 * a claim, every write is conditional, and what is stored already is not written again.
 */

import { AriusError } from '../errors.ts';
import {
  CONDITIONAL_WRITE_DELAY_BASE_MS,
  CONDITIONAL_WRITE_DELAY_MS_MAX,
  CONDITIONAL_WRITE_RETRIES_MAX,
  ROOT_CLAIM_WAIT_BASE_MS,
  ROOT_CLAIM_WAIT_MS_MAX,
} from '../limits.ts';
import { backOff, type Pacing } from './backoff.ts';
import { ClaimedRoot, type ClaimParts } from './claimed-root.ts';
import { ClaimLost, ShardConflict } from './conflict.ts';
import { FlushAttempt, type FlushParts } from './flush-attempt.ts';
import { type FlushCounters, noCounts } from './flush-counts.ts';
import { ManifestWriter, manifestBlobName } from './manifest.ts';

export interface FlushJob {
  readonly jobId: string;
  /** For people who look at a claim; nothing trusts it. */
  readonly owner: string;
}

export interface RootFlushParts extends FlushParts, ClaimParts {
  readonly repository: string;
  readonly pacing: Pacing;
}

/** @throws AriusError `pending-not-flushed` when the root does not come to rest; the rows stay pending */
export async function flushRoot(parts: RootFlushParts, root: string, job: FlushJob): Promise<FlushCounters> {
  const counts = noCounts();
  let obstacle = '';
  for (let attempt = 0; attempt < CONDITIONAL_WRITE_RETRIES_MAX; attempt += 1) {
    const claimed = await ClaimedRoot.claim(parts, root, job.owner);
    if (claimed === undefined) {
      obstacle = 'another flush holds it';
      await waitForClaim(parts.pacing, attempt);
      continue;
    }
    const name = manifestBlobName(parts.repository, job.jobId, root);
    const manifest = new ManifestWriter(name, root, (request) => claimed.write(({ staging }) => request(staging)));
    try {
      await new FlushAttempt(parts, root, claimed, manifest, counts).run();
      return counts;
    } catch (error) {
      if (!(error instanceof ShardConflict || error instanceof ClaimLost)) {
        throw error;
      }
      obstacle = error.message;
    } finally {
      await claimed.release();
    }
    await backOff(parts.pacing, attempt, CONDITIONAL_WRITE_DELAY_BASE_MS, CONDITIONAL_WRITE_DELAY_MS_MAX);
  }
  throw new AriusError(
    'pending-not-flushed',
    `The root ${root} could not be flushed in ${CONDITIONAL_WRITE_RETRIES_MAX} attempts: ${obstacle}`,
    'Run the same command again later; the entries stay pending and nothing is lost.',
    { retryAfterSeconds: Math.ceil(ROOT_CLAIM_WAIT_MS_MAX / 1000) },
  );
}

/** At least three quarters of the full wait, so that all attempts together outlast a claim whose holder died. */
async function waitForClaim(pacing: Pacing, attempt: number): Promise<void> {
  const fullMs = Math.min(ROOT_CLAIM_WAIT_BASE_MS * 2 ** attempt, ROOT_CLAIM_WAIT_MS_MAX);
  await pacing.sleep(fullMs * (0.75 + 0.25 * pacing.random()));
}
