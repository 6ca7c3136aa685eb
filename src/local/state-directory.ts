/**
 * The folder in which an embedded service keeps everything: storage, the durable backend's journal, lock, log.
 *
 * - Only its user may look inside (mode 0700): it holds the storage key, and archives of plain repositories.
 * - A folder that holds anything else is refused rather than taken over: a mistyped `--local` must not scatter files over
 *   someone's documents or change their mode.
 */

import { randomUUID } from 'node:crypto';
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder } from '../agent/files/make-folder.ts';
import { AriusError } from '../errors.ts';

/** Says what the folder is. The schema version is for the layout of what is inside. */
const MARKER_FILE = 'arius-local.json';
const SCHEMA_VERSION = 1;

export interface StateDirectory {
  readonly path: string;
  /** Azurite's data. */
  readonly storage: string;
  /** The durable backend's journal. */
  readonly hub: string;
  readonly lockFile: string;
  readonly serviceFile: string;
  readonly logFile: string;
}

/** Creates the folder when missing; refuses one that is something else or that cannot be written. */
export async function openStateDirectory(path: string): Promise<StateDirectory> {
  const absolute = resolve(path);
  try {
    await makeFolder(absolute, 0o700);
    await claim(absolute);
    await proveWritable(absolute);
  } catch (error) {
    throw error instanceof AriusError ? error : unusable(absolute, error as NodeJS.ErrnoException);
  }
  return {
    path: absolute,
    storage: join(absolute, 'storage'),
    hub: join(absolute, 'hub'),
    lockFile: join(absolute, 'lock.sqlite'),
    serviceFile: join(absolute, 'service.json'),
    logFile: join(absolute, 'service.log'),
  };
}

async function claim(path: string): Promise<void> {
  const marker = join(path, MARKER_FILE);
  const names = await readdir(path);
  if (names.includes(MARKER_FILE)) {
    const { schemaVersion } = JSON.parse(await readFile(marker, 'utf8')) as { schemaVersion?: unknown };
    if (schemaVersion === SCHEMA_VERSION) return;
    throw refused(path, `was written by another version of this program (layout ${String(schemaVersion)})`);
  }
  if (names.length > 0) throw refused(path, 'holds other files');
  await chmod(path, 0o700);
  await writeFile(marker, `${JSON.stringify({ schemaVersion: SCHEMA_VERSION })}\n`, { mode: 0o600 });
}

/** A folder on a read-only or full file system, or of another user, is found here and not in the middle of an archive. */
async function proveWritable(path: string): Promise<void> {
  const trial = join(path, `.trial-${randomUUID()}`);
  await writeFile(trial, 'x', { mode: 0o600 });
  await rm(trial);
}

function refused(path: string, why: string): AriusError {
  return new AriusError(
    'local-state-unusable',
    `${path} ${why}; the embedded service does not keep its state there.`,
    'Name an empty or a new folder with --local or ARIUS_LOCAL_DIR.',
  );
}

function unusable(path: string, error: NodeJS.ErrnoException): AriusError {
  if (error.code === 'ENOSPC') {
    return new AriusError(
      'disk-full',
      `There is no space left on the disk of ${path}.`,
      'Free some space and run again.',
      {
        cause: error,
      },
    );
  }
  return new AriusError(
    'local-state-unusable',
    `The embedded service cannot keep its state in ${path}: ${error.code ?? error.message}.`,
    'Make the folder writable for this user, or name another one with --local or ARIUS_LOCAL_DIR.',
    { cause: error },
  );
}
