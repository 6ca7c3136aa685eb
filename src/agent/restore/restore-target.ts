/**
 * The folder that is restored into. Nothing is written outside of it, and nothing through a symbolic link inside it. A
 * file appears under its name only when its content is verified: it is written under a temporary name, its hash compared,
 * its time set, and then renamed.
 *
 * Temporary files lie in one folder of their own in the target, `.arius-restore`, so that an interrupted restore leaves
 * nothing among the user's files, and the next one finds and removes it.
 */

import { randomBytes } from 'node:crypto';
import {
  copyFile,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  unlink,
  utimes,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AriusError } from '../../errors.ts';
import type { Hasher } from '../../hashing/hasher.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import { fileChunks } from '../files/file-chunks.ts';
import { makeFolder } from '../files/make-folder.ts';
import { codeOf } from '../files/system-errors.ts';

const TEMPORARY_FOLDER = '.arius-restore';
const OWN_FOLDER = /^(\d+)-[0-9a-f]{8}$/;
/** Checked directories that are remembered; more are simply checked again. */
const CHECKED_DIRECTORIES_MAX = 1000;
const TICKS_PER_SECOND = 10_000_000;

/** Occurs when one file cannot be written, which does not concern the others. */
export class FileNotWritableError extends Error {}
/** Occurs when what arrived is not the content it should be. */
export class WrongContentError extends Error {}

export class RestoreTarget {
  readonly root: string;
  readonly #temporary: string;
  readonly #checked = new Set<string>();
  #next = 1;

  private constructor(root: string, temporary: string) {
    this.root = root;
    this.#temporary = temporary;
  }

  /** Creates the folder when missing, and removes what an interrupted restore left in it. */
  static async open(folder: string): Promise<RestoreTarget> {
    try {
      await makeFolder(folder);
      const root = await realpath(folder);
      const parent = join(root, TEMPORARY_FOLDER);
      await makeRealDirectory(parent);
      await removeLeftovers(parent);
      const temporary = join(parent, `${process.pid}-${randomBytes(4).toString('hex')}`);
      await mkdir(temporary, { mode: 0o700 });
      return new RestoreTarget(root, temporary);
    } catch (error) {
      const known = targetError(error, folder);
      throw known instanceof AriusError ? known : notWritable(folder, error);
    }
  }

  async close(): Promise<void> {
    await rm(this.#temporary, { recursive: true, force: true });
    // Another restore may still use it.
    await rmdir(join(this.root, TEMPORARY_FOLDER)).catch(() => undefined);
  }

  /** Absolute. The path comes from a tree whose names were checked: no `..`, no empty names. */
  localPath(path: string): string {
    return join(this.root, path);
  }

  /** Writes a new temporary file and verifies it. Its path. */
  async receive(source: AsyncIterable<Uint8Array>, content: ContentHash, hasher: Hasher): Promise<string> {
    const path = join(this.#temporary, String(this.#next++));
    const hash = hasher.start();
    try {
      const handle = await this.#local(() => open(path, 'wx', 0o666));
      try {
        for await (const bytes of source) {
          hash.update(bytes);
          await this.#local(() => writeAll(handle, bytes));
        }
      } finally {
        await handle.close();
      }
      if (hash.digest() !== content) {
        throw new WrongContentError('the bytes do not have the content hash of the file');
      }
      return path;
    } catch (error) {
      await unlink(path).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Gives a verified temporary file its time and its name, replacing what was there (a link itself, not its target).
   * When that fails, the temporary file stays for the next name, and is removed with all others at the end.
   */
  async place(temporary: string, path: string, modifiedTicks: bigint): Promise<void> {
    const destination = this.localPath(path);
    await this.#makeDirectory(dirname(path) === '.' ? '' : dirname(path));
    await this.#local(() => setModified(temporary, modifiedTicks));
    await this.#local(() => this.#rename(temporary, destination));
  }

  /** A further copy of a file that was restored by this run, verified again while it is copied. */
  async copy(from: string, content: ContentHash, hasher: Hasher): Promise<string> {
    const handle = await this.#local(() => open(this.localPath(from), 'r'));
    try {
      return await this.receive(fileChunks(handle), content, hasher);
    } finally {
      await handle.close();
    }
  }

  async #rename(temporary: string, destination: string): Promise<void> {
    try {
      await rename(temporary, destination);
    } catch (error) {
      if (codeOf(error) !== 'EXDEV') {
        throw error;
      }
      // Another file system is mounted inside the target: the last step happens there.
      const beside = join(dirname(destination), `.arius-restore-${randomBytes(8).toString('hex')}`);
      try {
        await copyFile(temporary, beside);
        const { atime, mtime } = await lstat(temporary);
        await utimes(beside, atime, mtime);
        await rename(beside, destination);
      } catch (failure) {
        await unlink(beside).catch(() => undefined);
        throw failure;
      }
      await unlink(temporary);
    }
  }

  /** Every directory on the way must be a directory itself, not a link to one. */
  async #makeDirectory(directory: string): Promise<void> {
    if (directory === '' || this.#checked.has(directory)) {
      return;
    }
    const parent = dirname(directory);
    await this.#makeDirectory(parent === '.' ? '' : parent);
    await this.#local(() => makeRealDirectory(this.localPath(directory)));
    if (this.#checked.size >= CHECKED_DIRECTORIES_MAX) {
      this.#checked.clear();
    }
    this.#checked.add(directory);
  }

  /** Tells trouble of this machine's disk from trouble of the download. */
  async #local<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const fatal = targetError(error, this.root);
      if (fatal instanceof AriusError) {
        throw fatal;
      }
      const reason = error instanceof FileNotWritableError ? error.message : `it cannot be written (${codeOf(error)})`;
      throw new FileNotWritableError(reason, { cause: error });
    }
  }
}

async function makeRealDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') {
      throw error;
    }
    const stats = await lstat(path);
    if (!stats.isDirectory()) {
      const what = stats.isSymbolicLink() ? 'a symbolic link' : 'a file';
      throw new FileNotWritableError(`${path} is ${what} where a folder is needed`);
    }
  }
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = OWN_FOLDER.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }
}

/** Our own number counts as dead: it was given anew after the process that made the folder (as in a container). */
function isAlive(pid: number): boolean {
  if (pid === process.pid) {
    return false;
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.byteLength; ) {
    const { bytesWritten } = await handle.write(bytes, offset, bytes.byteLength - offset);
    offset += bytesWritten;
  }
}

/** Node takes seconds as a double, which keeps about a quarter of a microsecond of a present-day time. */
async function setModified(path: string, ticks: bigint): Promise<void> {
  const seconds = Number(ticks) / TICKS_PER_SECOND;
  await utimes(path, seconds, seconds);
}

function notWritable(folder: string, error: unknown): AriusError {
  const reason = error instanceof FileNotWritableError ? error.message : codeOf(error);
  return new AriusError(
    'folder-unreadable',
    `The folder ${folder} cannot be restored into: ${reason}.`,
    'Choose another folder, or run the command as a user who may write there.',
    { cause: error },
  );
}

/** What concerns the whole target becomes an error of the command; the rest stays what it is. */
function targetError(error: unknown, folder: string): unknown {
  const code = codeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AriusError(
      'disk-full',
      `There is no space left in ${folder}.`,
      'Make room, then run the same command again; it continues where it stopped.',
      { cause: error },
    );
  }
  if (code === 'EROFS') {
    const detail = `The folder ${folder} is on a file system that cannot be written.`;
    return new AriusError('folder-unreadable', detail, 'Choose another folder.', { cause: error });
  }
  return error;
}
