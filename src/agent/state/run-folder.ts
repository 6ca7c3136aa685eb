/**
 * Everything a run puts on disk lies in one folder: its database and the spooled bodies. A crash leaves nothing else,
 * and the next start beside it removes what is left. A folder belongs to a living run exactly while its database is
 * locked, so no process id is trusted.
 */

import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { AriusError } from '../../errors.ts';
import { Spool, spoolError } from '../archive/spool.ts';
import { makeFolder } from '../files/make-folder.ts';
import { loadSqlite, ScratchDatabase } from './database.ts';

const FOLDER_PREFIX = 'arius-run-';
const DATABASE_NAME = 'run.sqlite';

export interface RunFolder {
  readonly path: string;
  readonly database: ScratchDatabase;
  readonly spool: Spool;
  remove(): Promise<void>;
}

/** `parent` is created when missing. */
export async function openRunFolder(parent: string, schema: string, now = Date.now()): Promise<RunFolder> {
  const path = join(parent, `${FOLDER_PREFIX}${uuidv7()}`);
  try {
    await makeFolder(parent, 0o700);
    await removeDeadRuns(parent, now);
    await mkdir(path, { mode: 0o700 });
    const database = await ScratchDatabase.open(join(path, DATABASE_NAME), schema);
    return {
      path,
      database,
      spool: new Spool(path),
      async remove() {
        database.close();
        await rm(path, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
    throw folderError(error, parent);
  }
}

function folderError(error: unknown, parent: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' || code === 'EROFS' || code === 'ENOTDIR' || code === 'EEXIST' || code === 'EPERM') {
    const detail = `The folder ${parent} for temporary files cannot be used (${code}).`;
    return new AriusError('folder-unreadable', detail, 'Choose another one with --spool or ARIUS_AGENT_DIR.', {
      cause: error,
    });
  }
  return spoolError(error, parent);
}

async function removeDeadRuns(parent: string, now: number): Promise<void> {
  for (const name of await readdir(parent)) {
    if (name.startsWith(FOLDER_PREFIX) && (await isDead(join(parent, name), now))) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }
}

async function isDead(folder: string, now: number): Promise<boolean> {
  // A run that is just starting has its folder a moment before it has the lock.
  const { ctimeMs } = await stat(folder);
  if (now - ctimeMs < STARTING_MS_MAX && !(await readdir(folder)).includes(DATABASE_NAME)) {
    return false;
  }
  const { DatabaseSync } = await loadSqlite();
  try {
    const db = new DatabaseSync(join(folder, DATABASE_NAME), { timeout: 0 });
    try {
      db.exec('BEGIN EXCLUSIVE; COMMIT');
    } finally {
      db.close();
    }
    return true;
  } catch (error) {
    // Locked: alive. Anything else (damaged by the crash, no database yet) cannot be a database in use.
    return (error as { errcode?: number }).errcode !== SQLITE_BUSY;
  }
}

const SQLITE_BUSY = 5;
const STARTING_MS_MAX = 10_000;
