/**
 * `service.json`: how other commands of this user find the service that runs on a state directory. Only the holder of the
 * directory's lock writes it; a file without a held lock is what a killed process left, and means nothing.
 */

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

const runningService = z.object({
  /** `serve` is shared; a `command` is waited for, because it ends its service when it is done. */
  kind: z.enum(['serve', 'command']),
  url: z.string(),
  functionKey: z.string(),
  storageConnectionString: z.string(),
  pid: z.number(),
});

export type RunningService = z.infer<typeof runningService>;

/** Complete or not there: written beside and renamed. */
export async function writeServiceFile(path: string, service: RunningService): Promise<void> {
  await writeFile(`${path}.next`, JSON.stringify(service), { mode: 0o600 });
  await rename(`${path}.next`, path);
}

export async function readServiceFile(path: string): Promise<RunningService | undefined> {
  try {
    return runningService.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
}

export async function removeServiceFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
