/** Compares wanted files with what is in the target: what is identical stays, what differs stays unless told otherwise. */

import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import pMap from 'p-map';
import { DIRECTORY_ENTRIES_PER_PAGE, HASH_WORKERS } from '../../limits.ts';
import { signalsOf } from '../files/file-signals.ts';
import type { FileHasher } from '../files/hash-files.ts';
import { codeOf } from '../files/system-errors.ts';
import type { RestoreReport } from './restore.ts';
import type { PlannedFile, RestorePlan, RestoreState } from './restore-plan.ts';

export interface CompareOptions {
  readonly plan: RestorePlan;
  /** Absolute. Undefined: the target does not exist, so everything is needed. */
  readonly localPath: ((path: string) => string) | undefined;
  readonly hasher: FileHasher;
  readonly overwrite: boolean;
  readonly report: RestoreReport;
  readonly signal: AbortSignal;
}

export async function compareWithTarget(options: CompareOptions): Promise<void> {
  const { plan } = options;
  for (let afterId = 0; ; ) {
    const files = plan.files(afterId, DIRECTORY_ENTRIES_PER_PAGE);
    const last = files.at(-1);
    if (last === undefined) {
      return;
    }
    const states = await pMap(files, (file) => compare(options, file), {
      concurrency: HASH_WORKERS,
      signal: options.signal,
    });
    files.forEach((file, index) => {
      plan.setState(file.id, states[index] ?? 'needed');
    });
    afterId = last.id;
  }
}

async function compare(options: CompareOptions, file: PlannedFile): Promise<RestoreState> {
  const { localPath, report } = options;
  if (localPath === undefined) {
    return 'needed';
  }
  const local = localPath(file.path);
  let stats: BigIntStats;
  try {
    if (await leadsThroughLink(localPath, file.path)) {
      report.failed(file.path, 'a folder on its way is a symbolic link, and nothing is written through one');
      return 'failed';
    }
    stats = await lstat(local, { bigint: true });
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      return 'needed';
    }
    const occupied = codeOf(error) === 'ENOTDIR';
    report.failed(
      file.path,
      occupied ? 'a file is where a folder is needed' : `its place cannot be looked at (${codeOf(error)})`,
    );
    return 'failed';
  }
  if (stats.isDirectory()) {
    report.failed(file.path, 'a folder is in its place');
    return 'failed';
  }
  if (stats.isFile()) {
    const outcome = await options.hasher.hash(local, signalsOf(stats));
    if (outcome.kind === 'hashed' && outcome.contentHash === file.content) {
      report.identical(file.path);
      return 'identical';
    }
  }
  if (options.overwrite) {
    return 'needed';
  }
  report.kept(file.path);
  return 'kept';
}

/** Cheap for the usual case: the directory of a file is looked at once for all its files in a row. */
async function leadsThroughLink(localPath: (path: string) => string, path: string): Promise<boolean> {
  for (let directory = dirname(path); directory !== '.'; directory = dirname(directory)) {
    const stats = await lstat(localPath(directory));
    if (stats.isSymbolicLink()) {
      return true;
    }
  }
  return false;
}
