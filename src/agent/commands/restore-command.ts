/** `arius-agent restore <folder>`: options in, summary and exit code out. */

import { AriusError } from '../../errors.ts';
import { type CommandContext, openHashCache, withSession } from '../command.ts';
import { FileSystems } from '../files/network-filesystem.ts';
import { PathFilter } from '../files/path-filter.ts';
import { counted, formatBytes, formatCount, formatDuration } from '../output/format.ts';
import type { Output, Status } from '../output/output.ts';
import { printable } from '../printable.ts';
import {
  newRestoreCounters,
  type RestoreCounters,
  type RestorePhase,
  type RestoreReport,
  type RestoreResult,
  restore,
} from '../restore/restore.ts';
import { type CommonOptions, folderNamed } from '../settings.ts';
import { listSnapshots } from '../snapshots/list-snapshots.ts';
import { selectSnapshot } from '../snapshots/snapshot-selection.ts';

export interface RestoreCommandOptions extends CommonOptions {
  readonly snapshot?: string;
  readonly source?: string;
  readonly path?: readonly string[];
  readonly overwrite?: boolean;
  readonly dryRun?: boolean;
}

export async function restoreCommand(
  context: CommandContext,
  folderArgument: string,
  options: RestoreCommandOptions,
): Promise<number> {
  const startedMs = performance.now();
  const folder = folderNamed(folderArgument);
  const filter = new PathFilter(options.path ?? []);
  const counters = newRestoreCounters();
  const dryRun = options.dryRun === true;
  const facts = await withSession(context, options, { create: undefined }, async (session, settings) => {
    const snapshot = selectSnapshot(await listSnapshots(session.api, context.output), options);
    const cache = await openHashCache(session, settings);
    let phase: RestorePhase = 'tree';
    context.output.startStatus(() => statusOf(phase, counters, session.blobs.bytesDownloaded));
    try {
      const result = await restore(
        {
          folder,
          snapshot,
          filter,
          overwrite: options.overwrite === true,
          dryRun,
          temporaryDirectory: settings.runsDirectory,
        },
        {
          session,
          cache,
          fileSystems: new FileSystems(),
          counters,
          report: reportOf(context.output),
          abort: context.abort,
          onPhase(next) {
            phase = next;
          },
        },
      );
      return { snapshot: snapshot.name, result, bytesDownloaded: session.blobs.bytesDownloaded };
    } finally {
      cache.close();
      context.output.endStatus();
    }
  });
  conclude(context.output, counters, { ...facts, folder, dryRun, durationMs: performance.now() - startedMs });
  return closingError(context.output, counters);
}

interface RestoreFacts {
  readonly snapshot: string;
  readonly result: RestoreResult;
  readonly bytesDownloaded: number;
  readonly folder: string;
  readonly dryRun: boolean;
  readonly durationMs: number;
}

function conclude(output: Output, counters: RestoreCounters, facts: RestoreFacts): void {
  const { filesWanted, ...summary } = counters;
  output.summary(facts.dryRun ? dryRunLines(counters, facts) : summaryLines(counters, facts), {
    command: 'restore',
    snapshot: facts.snapshot,
    folder: facts.folder,
    filesWanted,
    ...summary,
    bytesDownloaded: facts.bytesDownloaded,
    durationMs: Math.round(facts.durationMs),
    ...(facts.dryRun
      ? { dryRun: true, filesToRestore: facts.result.filesNeeded, bytesToRestore: facts.result.bytesNeeded }
      : {}),
  });
}

function summaryLines(counters: RestoreCounters, facts: RestoreFacts): string[] {
  const stayed = [
    ...(counters.filesIdentical > 0 ? [`${formatCount(counters.filesIdentical)} identical`] : []),
    ...(counters.filesKept > 0
      ? [`${formatCount(counters.filesKept)} kept because they differ (--overwrite replaces them)`]
      : []),
    ...(counters.filesFailed > 0 ? [`${formatCount(counters.filesFailed)} failed`] : []),
    ...(counters.filesPending > 0 ? [`${formatCount(counters.filesPending)} waiting for rehydration`] : []),
  ];
  return [
    `Restored snapshot ${facts.snapshot} to ${printable(facts.folder)}.`,
    `  restored   ${counted(counters.filesRestored, 'file')}, ${formatBytes(counters.bytesRestored)}`,
    ...(stayed.length > 0 ? [`  others     ${stayed.join(', ')}`] : []),
    `  downloaded ${formatBytes(facts.bytesDownloaded)} in ${formatDuration(facts.durationMs)}`,
  ];
}

function dryRunLines(counters: RestoreCounters, facts: RestoreFacts): string[] {
  return [
    `Dry run of restoring snapshot ${facts.snapshot} to ${printable(facts.folder)}: nothing was changed.`,
    `  to restore ${counted(facts.result.filesNeeded, 'file')}, ${formatBytes(facts.result.bytesNeeded)}`,
    `  others     ${formatCount(counters.filesIdentical)} identical, ${formatCount(counters.filesKept)} would be kept`,
  ];
}

function closingError(output: Output, counters: RestoreCounters): number {
  let error: AriusError | undefined;
  if (counters.filesPending > 0) {
    error = new AriusError(
      'not-finished',
      `${counted(counters.filesPending, 'file')} in ${counted(counters.chunksPending, 'chunk')} of the archive tier ` +
        'could not be restored yet (listed above).',
      'Rehydrate the chunks, then run the same command again.',
    );
  } else if (counters.filesFailed > 0) {
    error = new AriusError(
      'partly-done',
      `${counted(counters.filesFailed, 'file')} could not be restored (listed above); everything else is.`,
      'Follow what is said with each file, then run the same command again.',
    );
  }
  if (error === undefined) {
    return 0;
  }
  output.error(error);
  return error.exitCode;
}

function reportOf(output: Output): RestoreReport {
  const file = (action: string, path: string): void =>
    output.file(`${action.padEnd(9)} ${printable(path)}`, { path: printable(path), action });
  return {
    restored: (path) => file('restored', path),
    identical: (path) => file('identical', path),
    kept: (path) => file('kept', path),
    failed(path, why) {
      output.warning(`not restored: ${printable(path)}: ${why}`, { path: printable(path), reason: 'failed' });
    },
    pending(path, why) {
      output.warning(`not restored yet: ${printable(path)}: ${why}`, { path: printable(path), reason: 'pending' });
    },
  };
}

function statusOf(phase: RestorePhase, counters: RestoreCounters, bytesDownloaded: number): Status {
  const doing = { tree: 'reading the tree', comparing: 'comparing', downloading: 'restoring', done: 'done' }[phase];
  const settled =
    counters.filesRestored +
    counters.filesIdentical +
    counters.filesKept +
    counters.filesFailed +
    counters.filesPending;
  const line =
    `${doing}: ${formatCount(settled)} of ${formatCount(counters.filesWanted)} files, ` +
    `${formatBytes(counters.bytesRestored)} restored, ${formatBytes(bytesDownloaded)} downloaded`;
  return { fields: { command: 'restore', phase, ...counters, bytesDownloaded }, lines: [line], short: line };
}
