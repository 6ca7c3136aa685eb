/** `arius-agent archive <folder>`: options in, summary and exit code out. */

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { sourceName, uploadTier } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { type ArchiveResult, archive } from '../archive/archive.ts';
import { type ArchiveCounters, newCounters, type UploadTier } from '../archive/archive-context.ts';
import { addRequests } from '../archive/cost.ts';
import { type CommandContext, openHashCache, withSession } from '../command.ts';
import { createExclusions } from '../files/exclusions.ts';
import { FileSystems } from '../files/network-filesystem.ts';
import { assertFolder } from '../files/scan.ts';
import { ArchiveDisplay } from '../output/archive-display.ts';
import { archiveReport } from '../output/archive-report.ts';
import { concludeArchive } from '../output/archive-summary.ts';
import { printable } from '../printable.ts';
import type { Session } from '../session.ts';
import { type CommonOptions, folderNamed, usage } from '../settings.ts';
import { createRateLimit } from '../transport/rate-limit.ts';

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
  const folder = folderNamed(folderArgument);
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
  const facts = await withSession(
    context,
    options,
    { create: { tier, dryRun }, ...throttle },
    async (session, settings) => {
      const display = new ArchiveDisplay(counters, session.blobs);
      context.output.startStatus(() => display.status());
      const cache = await openHashCache(session, settings);
      const spoolDirectory = resolve(options.spool ?? settings.runsDirectory);
      try {
        const result = await archive(
          {
            folder,
            source,
            exclusions: createExclusions(options.include, options.exclude),
            hashMode,
            dryRun,
            tier,
            spoolDirectory,
            ownFolders: new Set([settings.agentDirectory, settings.stateDirectory, spoolDirectory]),
          },
          {
            session,
            cache,
            fileSystems: new FileSystems(),
            counters,
            report: archiveReport(context.output, dryRun),
            abort: context.abort,
            onPhase: (phase) => display.phase(phase),
            onOperation: (operation) => display.operation(operation),
          },
        );
        return {
          repository: settings.repository,
          created: session.found === 'new',
          tier: tier ?? session.info.tier,
          result,
          storageRequests: allRequests(session, counters, result),
        };
      } finally {
        cache.close();
        context.output.endStatus();
      }
    },
  );
  // Only now: an embedded service has been ended, and everything is saved.
  return concludeArchive(context.output, counters, {
    ...facts,
    source,
    dryRun,
    durationMs: performance.now() - startedMs,
  });
}

/** The service wrote one thin stub for each recorded member on this run's behalf: the greatest part of a first archive. */
function allRequests(
  session: Session,
  counters: ArchiveCounters,
  result: ArchiveResult,
): Readonly<Record<string, number>> {
  const stubs = { 'blob-write': counters.thinChunks };
  return addRequests(addRequests({ ...session.blobs.counts }, stubs), result.serviceRequests);
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
