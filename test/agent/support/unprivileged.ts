/** Runs work as a user whom file permissions bind: tests often run as root, who may read everything. */

import { execFileSync } from 'node:child_process';

const NOBODY = 65534;

export async function asOrdinaryUser<T>(folders: readonly string[], work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) {
    return await work();
  }
  execFileSync('chown', ['-R', String(NOBODY), ...folders]);
  process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}
