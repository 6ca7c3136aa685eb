/** `arius-agent archive <folder>`: options in, summary and exit code out. */

import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { sourceName, uploadTier } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { type ArchiveResult, archive } from '../archive.ts';
import { type ArchiveCounters, type ArchiveReport, newCounters, type UploadTier } from '../archive-context.ts';
import { type CommandContext, withSession } from '../command.ts';
import { addRequests, type EstimatedCost, estimateCost } from '../cost.ts';
import { createExclusions } from '../exclusions.ts';
import { HashCache } from '../hash-cache.ts';
import { FileSystems } from '../network-filesystem.ts';
import { ArchiveDisplay } from '../output/archive-display.ts';
import { counted, formatBytes, formatDuration } from '../output/format.ts';
import type { Output } from '../output/output.ts';
import { printable } from '../printable.ts';
import { createRateLimit } from '../rate-limit.ts';
import { assertFolder, FAILED_SKIPS } from '../scan.ts';
import { fingerprintOf, type Session } from '../session.ts';
import { type CommonOptions, type Settings, usage } from '../settings.ts';

export interface ArchiveCommandOptions extends CommonOptions {
  readonly source?: string;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly dryRun?: boolean;
  readonly uploadLimit?: string;
  readonly spool?: string;
  readonly fastHash?: boolean;
  readonly rehash?: boolean;
  readonly tier?: string;
}

export async function archiveCommand(
  context: CommandContext,
  folderArgument: string,
  options: ArchiveCommandOptions,
): Promise<number> {
  const startedMs = performance.now();
  const folder = resolve(folderArgument);
  const source = sourceOf(options.source, folder);
  const tier = tierOf(options.tier);
  const dryRun = options.dryRun === true;
  const limit = bytesPerSecondOf(options.uploadLimit);
  const counters = newCounters();
  const hashMode = options.rehash === true ? 'all' : options.fastHash === true ? 'fast' : 'changed';
  const throttle =
    limit === undefined ? {} : { throttle: createRateLimit({ bytesPerSecond: limit, signal: context.abort.signal }) };
  // Before anything is started: a folder that is not there needs no service.
  await assertFolder(folder);
  const outcome = await withSession(
    context,
    options,
    { create: { tier, dryRun }, ...throttle },
    async (session, settings) => {
      const display = new ArchiveDisplay(counters, session.blobs);
      context.output.startStatus(() => display.status());
      const cache = await HashCache.open(join(settings.agentDirectory, 'hash-cache.sqlite'), {
        repository: settings.repository,
        passphraseFingerprint: fingerprintOf(session),
      });
      try {
        const result = await archive(
          {
            folder,
            source,
            exclusions: createExclusions(options.include, options.exclude),
            hashMode,
            dryRun,
            tier,
            spoolDirectory: resolve(options.spool ?? join(settings.agentDirectory, 'runs')),
          },
          {
            session,
            cache,
            fileSystems: new FileSystems(),
            counters,
            report: reportOf(context.output, dryRun),
            abort: context.abort,
            onPhase: (phase) => display.phase(phase),
            onOperation: (operation) => display.operation(operation),
          },
        );
        return outcomeOf(session, settings, result, counters, tier);
      } finally {
        cache.close();
        context.output.endStatus();
      }
    },
  );
  // Only now: an embedded service has been ended, and everything is saved.
  return conclude(context.output, counters, outcome, {
    dryRun,
    source,
    durationMs: performance.now() - startedMs,
  });
}

interface Outcome {
  readonly repository: string;
  readonly created: boolean;
  readonly result: ArchiveResult;
  readonly requests: Readonly<Record<string, number>>;
  readonly cost: (bytes: number) => EstimatedCost;
}

function outcomeOf(
  session: Session,
  settings: Settings,
  result: ArchiveResult,
  counters: ArchiveCounters,
  tier: UploadTier | undefined,
): Outcome {
  // The service wrote one thin stub for each recorded member on this run's behalf: the greatest part of a first archive.
  const stubs = { 'blob-write': counters.thinChunks };
  const requests = addRequests(addRequests({ ...session.blobs.counts }, stubs), result.serviceRequests);
  return {
    repository: settings.repository,
    created: session.found === 'new',
    result,
    requests,
    cost: (bytes) => estimateCost(requests, bytes, tier ?? session.info.tier),
  };
}

function conclude(
  output: Output,
  counters: ArchiveCounters,
  outcome: Outcome,
  run: { dryRun: boolean; source: string; durationMs: number },
): number {
  const { result } = outcome;
  const cost = outcome.cost(counters.bytesUploaded);
  const { scanDone: _scan, filesHashed: _hashed, bytesHashed: _bytes, ...counted } = counters;
  output.summary(summaryLines(counters, outcome, cost, run), {
    command: 'archive',
    repository: outcome.repository,
    source: run.source,
    runId: result.runId,
    snapshot: result.snapshot,
    snapshotPublished: result.snapshotPublished,
    ...counted,
    shardsWritten: result.shardsWritten,
    shardsSplit: result.shardsSplit,
    indexBytesWritten: result.indexBytesWritten,
    storageRequests: outcome.requests,
    estimatedCost: cost,
    durationMs: Math.round(run.durationMs),
    ...(run.dryRun ? { dryRun: true } : {}),
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

function summaryLines(
  counters: ArchiveCounters,
  outcome: Outcome,
  cost: EstimatedCost,
  run: { dryRun: boolean; source: string; durationMs: number },
): string[] {
  const { result } = outcome;
  const took = formatDuration(run.durationMs);
  const seen = `${counted(counters.filesScanned, 'file')} (${formatBytes(counters.bytesScanned)})`;
  const left = counters.filesExcluded > 0 ? `, ${counters.filesExcluded} left out` : '';
  const empty =
    counters.emptyFolders > 0
      ? `, ${counted(counters.emptyFolders, 'empty folder')} (a repository keeps files only)`
      : '';
  if (run.dryRun) {
    return [
      `Dry run of ${run.source}: nothing was uploaded or changed.`,
      `  scanned   ${seen}${left}${empty}`,
      `  to upload ${counted(counters.filesNew, 'new file')}, ${formatBytes(counters.bytesNew)} before compression`,
      `  known     ${counted(counters.filesUnchanged, 'file')}`,
    ];
  }
  const lines = [
    headline(outcome, run.source),
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

function headline(outcome: Outcome, source: string): string {
  const { result } = outcome;
  if (result.snapshotPublished) {
    const repository = outcome.created ? `the new repository "${outcome.repository}"` : `"${outcome.repository}"`;
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

function reportOf(output: Output, dryRun: boolean): ArchiveReport {
  return {
    verbose: output.verbose,
    skipped({ path, reason, explanation }) {
      const fields = { path, reason };
      if (FAILED_SKIPS.has(reason)) {
        output.warning(`not archived: ${path}: ${explanation}`, fields);
      } else if (reason === 'excluded') {
        output.file(`excluded  ${path}`, { path, action: 'excluded' });
      } else {
        output.warning(`left out: ${path}: ${explanation}`, fields);
      }
    },
    changed(path) {
      output.warning(`changed while reading: ${printable(path)}: it is read again`, {
        path: printable(path),
        reason: 'changed-while-reading',
      });
    },
    failed(path, why) {
      output.warning(`not archived: ${printable(path)}: ${why}`, { path: printable(path), reason: 'failed' });
    },
    waiting(path, why) {
      output.warning(`waiting: ${printable(path)}: ${why}`, { path: printable(path), reason: 'waiting' });
    },
    pointerWithoutChunk(path) {
      output.warning(
        `not archived: ${printable(path)}: its pointer file names a content the repository does not hold`,
        {
          path: printable(path),
          reason: 'pointer-without-chunk',
        },
      );
    },
    archived(path, action) {
      output.file(`${dryRun ? 'would be ' : ''}${action.padEnd(9)} ${printable(path)}`, {
        path: printable(path),
        action,
      });
    },
  };
}

function sourceOf(given: string | undefined, folder: string): string {
  const source = given ?? `${hostname()}:${folder}`;
  const parsed = sourceName.safeParse(source);
  if (!parsed.success) {
    throw usage(
      `"${printable(source)}" cannot name a source.`,
      'Choose another name with --source: 1 to 1024 characters, no control characters.',
    );
  }
  return parsed.data;
}

function tierOf(given: string | undefined): UploadTier | undefined {
  if (given === undefined) {
    return undefined;
  }
  if (given === 'archive') {
    throw new AriusError(
      'tier-not-supported',
      'The archive tier cannot be chosen yet: restoring from it is not built.',
      'Choose hot, cool or cold with --tier.',
    );
  }
  const parsed = uploadTier.safeParse(given);
  if (!parsed.success) {
    throw usage(`"${given}" is not a tier.`, 'Choose hot, cool or cold with --tier.');
  }
  return parsed.data;
}

const MIB = 2 ** 20;

function bytesPerSecondOf(given: string | undefined): number | undefined {
  if (given === undefined) {
    return undefined;
  }
  const mebibytes = Number(given);
  if (!Number.isFinite(mebibytes) || mebibytes <= 0) {
    throw usage(`"${given}" is not an upload limit.`, 'Give MiB per second, for example --upload-limit 2.5.');
  }
  return mebibytes * MIB;
}
