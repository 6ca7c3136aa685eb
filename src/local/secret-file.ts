/** A random secret that only this user can read, made on first use. */

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const SECRET_BYTES = 64;

/** The caller is the only one that creates this file (it holds the folder's lock, or nobody else knows the folder). */
export async function readOrCreateSecret(directory: string, name: string): Promise<string> {
  const path = join(directory, name);
  const stored = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (stored !== undefined && Buffer.from(stored, 'base64').length === SECRET_BYTES) return stored;
  const secret = randomBytes(SECRET_BYTES).toString('base64');
  await writeFile(path, secret, { mode: 0o600 });
  return secret;
}
