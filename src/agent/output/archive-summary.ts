/** What an archive run says of itself at its end, and the exit code that follows from it. */

import { AriusError } from '../../errors.ts';
import type { ArchiveResult } from '../archive/archive.ts';
import type { ArchiveCounters, UploadTier } from '../archive/archive-context.ts';
import { type EstimatedCost, estimateCost } from '../archive/cost.ts';
import { counted, formatBytes, formatDuration } from './format.ts';
import type { Output } from './output.ts';

export interface ArchiveFacts {
  readonly repository: string;
  /** This run created the repository. */
  readonly created: boolean;
  readonly source: string;
  readonly tier: UploadTier;
  readonly dryRun: boolean;
  readonly result: ArchiveResult;
  /** By class, of agent and service together. */
  readonly storageRequests: Readonly<Record<string, number>>;
  readonly durationMs: number;
}

export function concludeArchive(output: Output, counters: ArchiveCounters, facts: ArchiveFacts): number {
  const { result } = facts;
  const cost = estimateCost(facts.storageRequests, counters.bytesUploaded, facts.tier);
  const { scanDone: _scan, filesHashed: _hashed, bytesHashed: _bytes, ...totals } = counters;
  output.summary(summaryLines(counters, facts, cost), {
    command: 'archive',
    repository: facts.repository,
    source: facts.source,
    runId: result.runId,
    snapshot: result.snapshot,
    snapshotPublished: result.snapshotPublished,
    ...totals,
    shardsWritten: result.shardsWritten,
    shardsSplit: result.shardsSplit,
    indexBytesWritten: result.indexBytesWritten,
    storageRequests: facts.storageRequests,
    estimatedCost: cost,
    durationMs: Math.round(facts.durationMs),
    ...(facts.dryRun ? { dryRun: true } : {}),
  });
  return closingError(output, counters);
}

/** Waiting comes first: the run has to be repeated anyway, and will then say what is left to say. */
function closingError(output: Output, counters: ArchiveCounters): number {
  const failed = counters.filesFailed;
  let error: AriusError | undefined;
  if (counters.filesWaiting > 0) {
    error = new AriusError(
      'not-finished',
      `${counted(counters.filesWaiting, 'file')} could not be archived yet (listed above); everything else is.`,
      'Run the same command again in an hour.',
    );
  } else if (failed > 0) {
    error = new AriusError(
      'partly-done',
      `${counted(failed, 'file or folder', 'files or folders')} could not be archived (listed above); everything else is.`,
      'Make them readable or exclude them with --exclude, then run the same command again.',
    );
  }
  if (error === undefined) {
    return 0;
  }
  output.error(error);
  return error.exitCode;
}

function summaryLines(counters: ArchiveCounters, facts: ArchiveFacts, cost: EstimatedCost): string[] {
  const { result } = facts;
  const took = formatDuration(facts.durationMs);
  const seen = `${counted(counters.filesScanned, 'file')} (${formatBytes(counters.bytesScanned)})`;
  const left = counters.filesExcluded > 0 ? `, ${counters.filesExcluded} left out` : '';
  const empty =
    counters.emptyFolders > 0
      ? `, ${counted(counters.emptyFolders, 'empty folder')} (a repository keeps files only)`
      : '';
  if (facts.dryRun) {
    return [
      `Dry run of ${facts.source}: nothing was uploaded or changed.`,
      `  scanned   ${seen}${left}${empty}`,
      `  to upload ${counted(counters.filesNew, 'new file')}, ${formatBytes(counters.bytesNew)} before compression`,
      `  known     ${counted(counters.filesUnchanged, 'file')}`,
    ];
  }
  const lines = [
    headline(facts),
    `  scanned   ${seen}${left}${empty}`,
    `  files     ${counters.filesNew} new, ${counters.filesUnchanged} unchanged${troubles(counters)}`,
    `  uploaded  ${formatBytes(counters.bytesUploaded)} in ${counted(counters.chunksUploaded, 'chunk')} ` +
      `(${counted(counters.tarsUploaded, 'tar')} with ${counted(counters.thinChunks, 'small file')}), ` +
      `${counted(counters.filetreesUploaded, 'filetree')}`,
    `  index     ${counted(counters.entriesRecorded, 'entry', 'entries')} recorded, ` +
      `${counted(result.shardsWritten, 'shard')} written, ${result.shardsSplit} split`,
    `  cost      about ${cost.amount} ${cost.currency} once, ${cost.monthlyAmount} ${cost.currency} a month ` +
      '(list prices; --json says what is assumed)',
    `  took      ${took}`,
  ];
  return counters.chunksUploaded === 0 && !result.snapshotPublished && counters.filesNew === 0
    ? [...lines.slice(0, 3), `  took      ${took}`]
    : lines;
}

function headline(facts: ArchiveFacts): string {
  const { result, source } = facts;
  if (result.snapshotPublished) {
    const repository = facts.created ? `the new repository "${facts.repository}"` : `"${facts.repository}"`;
    return `Archived ${source} to ${repository}: snapshot ${result.snapshot}.`;
  }
  return result.snapshot === null
    ? `Nothing to archive in ${source}: no snapshot was published.`
    : `Nothing has changed in ${source} since snapshot ${result.snapshot}: nothing was uploaded, no snapshot was published.`;
}

function troubles(counters: ArchiveCounters): string {
  const parts: string[] = [];
  if (counters.filesChangedWhileReading > 0) {
    parts.push(`${counters.filesChangedWhileReading} changed while reading`);
  }
  if (counters.filesFailed > 0) {
    parts.push(`${counters.filesFailed} failed`);
  }
  if (counters.filesWaiting > 0) {
    parts.push(`${counters.filesWaiting} waiting`);
  }
  return parts.length === 0 ? '' : `, ${parts.join(', ')}`;
}
