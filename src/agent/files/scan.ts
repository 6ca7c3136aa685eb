/**
 * Walks the archived folder, depth first, in an order that depends on nothing but the names: the files of a directory
 * before its subdirectories, both by UTF-16 code units. Two scans of an unchanged folder therefore pack the same tars.
 *
 * Names are read as bytes: one that is not valid UTF-8 is refused, not mangled. Everything left out is reported, each
 * with its reason. Listings are staged in the run database, so a directory may hold any number of entries.
 */

import { isUtf8 } from 'node:buffer';
import type { BigIntStats, Dirent } from 'node:fs';
import { access, constants, lstat, opendir, stat } from 'node:fs/promises';
import { AriusError } from '../../errors.ts';
import { DIRECTORY_ENTRIES_PER_PAGE } from '../../limits.ts';
import { isPointerName } from '../../repository/pointer-file.ts';
import { pathProblem, segmentProblem } from '../../repository/repository-path.ts';
import type { RunDatabase } from '../archive/run-database.ts';
import { printable, printableBytes } from '../printable.ts';
import { joinPath, localPathOf } from '../state/paths.ts';
import type { Exclusions } from './exclusions.ts';
import { type FileSignals, hasTreeTimes, signalsOf } from './file-signals.ts';
import { codeOf } from './system-errors.ts';

export interface ScannedFile {
  readonly directoryId: number;
  /** As it will stand in the tree; of a pointer file, the name of the binary it stands for. */
  readonly name: string;
  readonly path: string;
  /** Where the bytes are, below the archived folder. */
  readonly localPath: string;
  readonly signals: FileSignals;
  /** A pointer file whose binary is not here: its text is the content hash. */
  readonly pointer: boolean;
}

export type SkipReason =
  | 'excluded'
  | 'link-to-folder'
  | 'broken-link'
  | 'special-file'
  | 'pointer-file'
  | 'name-not-representable'
  | 'time-not-representable'
  | 'unreadable';

/** Left out on purpose (excluded), or because it could not be archived (failed). */
export const FAILED_SKIPS: ReadonlySet<SkipReason> = new Set<SkipReason>([
  'name-not-representable',
  'time-not-representable',
  'unreadable',
]);

export interface Skip {
  /** Printable. */
  readonly path: string;
  readonly reason: SkipReason;
  readonly explanation: string;
}

export interface ScanOptions {
  readonly root: string;
  readonly run: RunDatabase;
  readonly exclusions: Exclusions;
  /** Absolute; our own state, which changes while it is read and holds nothing that is worth keeping. */
  readonly ownFolders?: ReadonlySet<string>;
  onSkip(skip: Skip): void;
  onEmptyFolder?(path: string): void;
}

const POINTER_SUFFIX_LENGTH = '.pointer.arius'.length;
/** Looked at together: enough to keep the disk busy. */
const STATS_AT_A_TIME = 16;

export async function* scan(options: ScanOptions): AsyncGenerator<ScannedFile, void, void> {
  yield* new Scan(options).walk();
}

class Scan {
  readonly #options: ScanOptions;
  readonly #run: RunDatabase;

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#run = options.run;
  }

  async *walk(): AsyncGenerator<ScannedFile, void, void> {
    await assertFolder(this.#options.root);
    const rootId = this.#run.addDirectory(null, '');
    await this.#stage(rootId, '');
    yield* this.#files(rootId, '');
    // The directories between the root and the one being read; each remembers its last entered child.
    const open: { id: number; path: string; after: string }[] = [{ id: rootId, path: '', after: '' }];
    for (let current = open.at(-1); current !== undefined; current = open.at(-1)) {
      const name = this.#run.listings.names(current.id, 'directory', current.after, 1)[0];
      if (name === undefined) {
        this.#run.listings.drop(current.id);
        this.#run.endDirectory(current.id);
        open.pop();
        continue;
      }
      current.after = name;
      const path = joinPath(current.path, name);
      const id = this.#run.addDirectory(current.id, name);
      await this.#stage(id, path);
      open.push({ id, path, after: '' });
      yield* this.#files(id, path);
    }
  }

  /** Lists a directory into the run database. One that cannot be read is reported and stays empty. */
  async #stage(id: number, path: string): Promise<void> {
    let entries = 0;
    try {
      const directory = await opendir(this.#local(path), {
        // Names as bytes; the types know only text here.
        encoding: 'buffer' as BufferEncoding,
        bufferSize: DIRECTORY_ENTRIES_PER_PAGE,
      });
      for await (const entry of directory as unknown as AsyncIterable<Dirent<Buffer>>) {
        entries++;
        this.#stageEntry(id, path, entry);
      }
    } catch (error) {
      if (path === '') {
        throw folderUnreadable(this.#options.root, error);
      }
      this.#skip(path, 'unreadable', `this folder cannot be read (${codeOf(error)})`);
      return;
    }
    if (entries === 0) {
      this.#options.onEmptyFolder?.(printable(path));
    }
  }

  #stageEntry(id: number, parent: string, entry: Dirent<Buffer>): void {
    const name = entry.name.toString('utf8');
    const path = joinPath(parent, name);
    if (!isUtf8(entry.name)) {
      const shown = joinPath(printable(parent), printableBytes(entry.name));
      this.#options.onSkip({
        path: shown,
        reason: 'name-not-representable',
        explanation: 'the name is not valid UTF-8, so the repository cannot hold it; rename it',
      });
      return;
    }
    const problem = segmentProblem(name) ?? (entry.isDirectory() ? pathProblem(`${path}/x`) : undefined);
    if (problem !== undefined) {
      this.#skip(path, 'name-not-representable', `${problem}, so the repository cannot hold it; rename it`);
    } else if (entry.isDirectory()) {
      if (this.#options.exclusions.excludesDirectory(path, name)) {
        this.#skip(path, 'excluded', 'excluded folder');
      } else if (this.#options.ownFolders?.has(this.#local(path)) === true) {
        this.#skip(path, 'excluded', 'state of Arius Functions itself');
      } else {
        this.#run.listings.add(id, 'directory', name);
      }
    } else if (this.#options.exclusions.excludesFile(binaryPath(path), binaryPath(name))) {
      this.#skip(path, 'excluded', 'excluded file');
    } else {
      this.#run.listings.add(id, 'file', name);
    }
  }

  async *#files(id: number, path: string): AsyncGenerator<ScannedFile, void, void> {
    for (let after = ''; ; ) {
      const names = this.#run.listings.names(id, 'file', after, STATS_AT_A_TIME);
      const files = await Promise.all(names.map((name) => this.#look(id, path, name)));
      for (const file of files) {
        if (file !== undefined) {
          yield file;
        }
      }
      const last = names.at(-1);
      if (last === undefined) {
        return;
      }
      after = last;
    }
  }

  async #look(directoryId: number, directory: string, localName: string): Promise<ScannedFile | undefined> {
    const localPath = joinPath(directory, localName);
    const pointer = isPointerName(localName);
    if (pointer && !this.#standsAlone(directoryId, localPath, localName)) {
      return undefined;
    }
    const stats = await this.#statsOf(localPath);
    if (stats === undefined) {
      return undefined;
    }
    const signals = signalsOf(stats);
    if (!hasTreeTimes(signals)) {
      this.#skip(localPath, 'time-not-representable', 'its time lies outside the years 1 to 9999; touch it');
      return undefined;
    }
    return {
      directoryId,
      name: binaryPath(localName),
      path: binaryPath(localPath),
      localPath,
      signals,
      pointer,
    };
  }

  /** A pointer file beside its binary says nothing new; its own name is never archived. */
  #standsAlone(directoryId: number, localPath: string, localName: string): boolean {
    const binary = binaryPath(localName);
    if (segmentProblem(binary) !== undefined || isPointerName(binary)) {
      this.#skip(localPath, 'pointer-file', 'a pointer file without a usable name');
      return false;
    }
    return !this.#run.listings.has(directoryId, 'file', binary);
  }

  /** Of the file itself; of a link, of the file it leads to. Undefined, and reported, when it is neither. */
  async #statsOf(path: string): Promise<BigIntStats | undefined> {
    const local = this.#local(path);
    try {
      const own = await lstat(local, { bigint: true });
      if (own.isFile()) {
        return own;
      }
      if (!own.isSymbolicLink()) {
        this.#skip(path, 'special-file', 'neither a file nor a folder');
        return undefined;
      }
    } catch (error) {
      this.#skip(path, 'unreadable', `it cannot be looked at (${codeOf(error)})`);
      return undefined;
    }
    try {
      const target = await stat(local, { bigint: true });
      if (target.isFile()) {
        return target;
      }
      if (target.isDirectory()) {
        this.#skip(path, 'link-to-folder', 'a symbolic link to a folder');
      } else {
        this.#skip(path, 'special-file', 'a symbolic link to something that is neither a file nor a folder');
      }
    } catch {
      this.#skip(path, 'broken-link', 'a symbolic link that leads nowhere');
    }
    return undefined;
  }

  #local(path: string): string {
    return localPathOf(this.#options.root, path);
  }

  #skip(path: string, reason: SkipReason, explanation: string): void {
    this.#options.onSkip({ path: printable(path), reason, explanation });
  }
}

function binaryPath(pathOrName: string): string {
  return isPointerName(pathOrName) ? pathOrName.slice(0, -POINTER_SUFFIX_LENGTH) : pathOrName;
}

/** That there is a folder which can be listed. @throws AriusError `folder-unreadable` */
export async function assertFolder(root: string): Promise<void> {
  try {
    if (!(await stat(root)).isDirectory()) {
      throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' });
    }
    await access(root, constants.R_OK | constants.X_OK);
  } catch (error) {
    throw folderUnreadable(root, error);
  }
}

function folderUnreadable(root: string, error: unknown): AriusError {
  const code = codeOf(error);
  const reasons: Record<string, string> = {
    ENOENT: 'does not exist',
    ENOTDIR: 'is not a folder',
    EACCES: 'may not be read by this user',
    EPERM: 'may not be read by this user',
  };
  return new AriusError(
    'folder-unreadable',
    `The folder ${printable(root)} ${reasons[code] ?? `cannot be read (${code})`}.`,
    code === 'EACCES' || code === 'EPERM'
      ? 'Run the command as a user who may read it.'
      : 'Check the path and run the command again.',
    { cause: error },
  );
}
