/**
 * The directory of one task hub belongs to one process: two would interleave their journals. The successor of a killed
 * parent finds the old host still ending, so it waits for as long as that may take.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { STOP_LIMIT_MS } from '../../limits.ts';
import { ProcessLock } from '../process-lock.ts';

/** Another host works in this state directory; this one does not start. */
class HubInUseError extends Error {
  override readonly name = 'HubInUseError';
}

export function claimHub(directory: string): ProcessLock {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = ProcessLock.tryAcquire(join(directory, 'hub.lock'), STOP_LIMIT_MS + 500);
  if (lock !== undefined) return lock;
  throw new HubInUseError(`Another process uses ${directory}. Stop it, or choose another state directory.`);
}
