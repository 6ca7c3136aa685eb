/**
 * Restores a snapshot, or paths of it, into a folder. Running it again after an interruption continues: what is there
 * and identical is recognised by its hash and not downloaded again.
 */

import { lstat } from 'node:fs/promises';
import type { SnapshotInfo } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { spoolError } from '../archive/spool.ts';
import type { HashCache } from '../files/hash-cache.ts';
import { FileHasher } from '../files/hash-files.ts';
import type { FileSystems } from '../files/network-filesystem.ts';
import type { PathFilter } from '../files/path-filter.ts';
import { codeOf } from '../files/system-errors.ts';
import { printable } from '../printable.ts';
import type { Session } from '../session.ts';
import { FiletreeReader } from '../snapshots/filetree-reader.ts';
import { localPathOf } from '../state/paths.ts';
import { openRunFolder } from '../state/run-folder.ts';
import { compareWithTarget } from './restore-compare.ts';
import { downloadChunks, locateContents } from './restore-download.ts';
import { RESTORE_SCHEMA, RestorePlan } from './restore-plan.ts';
import { RestoreTarget } from './restore-target.ts';
import { walkTree } from './restore-walk.ts';

export interface RestoreCounters {
  filesWanted: number;
  filesRestored: number;
  filesIdentical: number;
  filesKept: number;
  filesFailed: number;
  filesPending: number;
  bytesRestored: number;
  chunksPending: number;
}

export function newRestoreCounters(): RestoreCounters {
  return {
    filesWanted: 0,
    filesRestored: 0,
    filesIdentical: 0,
    filesKept: 0,
    filesFailed: 0,
    filesPending: 0,
    bytesRestored: 0,
    chunksPending: 0,
  };
}

export interface RestoreReport {
  restored(path: string): void;
  identical(path: string): void;
  kept(path: string): void;
  failed(path: string, why: string): void;
  pending(path: string, why: string): void;
}

export type RestorePhase = 'tree' | 'comparing' | 'downloading' | 'done';

export interface RestoreOptions {
  /** Absolute. */
  readonly folder: string;
  readonly snapshot: SnapshotInfo;
  readonly filter: PathFilter;
  readonly overwrite: boolean;
  readonly dryRun: boolean;
  readonly temporaryDirectory: string;
}

export interface RestoreEnvironment {
  readonly session: Session;
  readonly cache: HashCache;
  readonly fileSystems: FileSystems;
  readonly counters: RestoreCounters;
  readonly report: RestoreReport;
  readonly abort: AbortController;
  onPhase(phase: RestorePhase): void;
}

export interface RestoreResult {
  /** What a dry run would restore. */
  readonly filesNeeded: number;
  readonly bytesNeeded: number;
}

export async function restore(options: RestoreOptions, environment: RestoreEnvironment): Promise<RestoreResult> {
  const run = await openRunFolder(options.temporaryDirectory, RESTORE_SCHEMA);
  try {
    return await execute(options, environment, new RestorePlan(run.database));
  } catch (error) {
    throw spoolError(error, options.temporaryDirectory);
  } finally {
    await run.remove();
  }
}

async function execute(
  options: RestoreOptions,
  environment: RestoreEnvironment,
  plan: RestorePlan,
): Promise<RestoreResult> {
  const { session, abort, counters, onPhase } = environment;
  const { signal } = abort;
  const report = countingReport(environment.report, counters);
  const shared = { plan, api: session.api, counters, report, signal };

  onPhase('tree');
  await walkTree({
    plan,
    root: options.snapshot.rootHash as FileTreeHash,
    reader: new FiletreeReader({ ...session, signal }),
    filter: options.filter,
    signal,
    onFile() {
      counters.filesWanted++;
    },
  });
  assertPathsFound(options.filter);

  onPhase('comparing');
  const exists = await isFolder(options.folder);
  await compareWithTarget({
    ...shared,
    localPath: exists ? (path) => localPathOf(options.folder, path) : undefined,
    overwrite: options.overwrite,
    hasher: new FileHasher({
      hasher: session.hasher,
      cache: environment.cache,
      fileSystems: environment.fileSystems,
      mode: 'changed',
      signal,
    }),
  });

  onPhase('downloading');
  await locateContents(shared);
  const needed = plan.totals('needed');
  if (!options.dryRun && needed.files > 0) {
    const target = await RestoreTarget.open(options.folder);
    try {
      await downloadChunks({ ...shared, target, blobs: session.blobs, codec: session.codec, hasher: session.hasher });
    } finally {
      await target.close();
    }
  }
  onPhase('done');
  return { filesNeeded: needed.files, bytesNeeded: needed.bytes };
}

function countingReport(report: RestoreReport, counters: RestoreCounters): RestoreReport {
  return {
    ...report,
    identical(path) {
      counters.filesIdentical++;
      report.identical(path);
    },
    kept(path) {
      counters.filesKept++;
      report.kept(path);
    },
    failed(path, why) {
      counters.filesFailed++;
      report.failed(path, why);
    },
    pending(path, why) {
      counters.filesPending++;
      report.pending(path, why);
    },
  };
}

function assertPathsFound(filter: PathFilter): void {
  const unmet = filter.unmet();
  if (unmet.length > 0) {
    throw new AriusError(
      'not-found',
      `The snapshot holds nothing at ${unmet.map(printable).join(', ')}.`,
      'See what it holds with arius-agent ls.',
    );
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    const stats = await lstat(path);
    if (stats.isDirectory() || stats.isSymbolicLink()) {
      return true;
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      return false;
    }
    throw unusable(path, codeOf(error));
  }
  throw unusable(path, 'it is not a folder');
}

function unusable(path: string, why: string): AriusError {
  return new AriusError(
    'folder-unreadable',
    `The folder ${printable(path)} cannot be restored into: ${why}.`,
    'Choose another folder.',
  );
}
