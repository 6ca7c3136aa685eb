/**
 * One archive run, from the scanned folder to the published snapshot. Running it again after any interruption is the
 * recovery: what is stored is found stored, and what this process left on disk is thrown away.
 */

import { v7 as uuidv7 } from 'uuid';
import { completeRunResult, type OperationInfo, type RunInfo, type ShardEntryDto } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import type { ContentHash, FileTreeHash } from '../../hashing/hashes.ts';
import { DIRECTORY_ENTRIES_PER_PAGE } from '../../limits.ts';
import type { Exclusions } from '../files/exclusions.ts';
import type { HashCache } from '../files/hash-cache.ts';
import { FileHasher, type HashFilesOptions } from '../files/hash-files.ts';
import type { FileSystems } from '../files/network-filesystem.ts';
import { FAILED_SKIPS, type Skip, scan } from '../files/scan.ts';
import type { Session } from '../session.ts';
import { FiletreeReader } from '../snapshots/filetree-reader.ts';
import { openRunFolder, type RunFolder } from '../state/run-folder.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import type { ArchiveContext, ArchiveCounters, ArchiveReport, UploadTier } from './archive-context.ts';
import { runRounds } from './archive-rounds.ts';
import { buildFiletrees } from './filetree-builder.ts';
import { markKnownFiletrees } from './known-filetrees.ts';
import { RUN_SCHEMA, RunDatabase } from './run-database.ts';
import { spoolError } from './spool.ts';

export interface ArchiveOptions {
  /** Absolute. */
  readonly folder: string;
  /** `host:absolute folder` unless the user chose another name. */
  readonly source: string;
  readonly exclusions: Exclusions;
  /** Never archived: where agent and embedded service keep their state. Absolute. */
  readonly ownFolders: ReadonlySet<string>;
  /** `all` (`--rehash`) believes nothing that was found before: every filetree is offered again too. */
  readonly hashMode: HashFilesOptions['mode'];
  readonly dryRun: boolean;
  /** Undefined: the repository's. */
  readonly tier: UploadTier | undefined;
  /** Where temporary files go. */
  readonly spoolDirectory: string;
}

export interface ArchiveEnvironment {
  readonly session: Session;
  readonly cache: HashCache;
  readonly fileSystems: FileSystems;
  readonly counters: ArchiveCounters;
  readonly report: ArchiveReport;
  readonly abort: AbortController;
  onPhase(phase: ArchivePhase): void;
  onOperation(operation: OperationInfo): void;
  /** Tests of files that change at the worst moment. */
  readonly hooks?: {
    readonly afterHash?: (path: string) => Promise<void>;
    readonly beforeCarrierRead?: (path: string) => Promise<void>;
  };
}

export type ArchivePhase = 'files' | 'filetrees' | 'completing' | 'done';

export interface ArchiveResult {
  readonly runId: string;
  readonly snapshot: string | null;
  readonly snapshotPublished: boolean;
  readonly fileCount: number;
  readonly bytes: number;
  readonly shardsWritten: number;
  readonly shardsSplit: number;
  readonly indexBytesWritten: number;
  readonly serviceRequests: Readonly<Record<string, number>>;
}

export async function archive(options: ArchiveOptions, environment: ArchiveEnvironment): Promise<ArchiveResult> {
  const folder = await openRunFolder(options.spoolDirectory, RUN_SCHEMA);
  try {
    return await new ArchiveRun(options, environment, folder).execute();
  } catch (error) {
    // The run's database lies beside the bodies, and a full disk can meet either first.
    throw spoolError(error, options.spoolDirectory);
  } finally {
    await folder.remove();
  }
}

class ArchiveRun {
  readonly #options: ArchiveOptions;
  readonly #environment: ArchiveEnvironment;
  readonly #folder: RunFolder;
  readonly #runId = uuidv7();
  readonly #run: RunDatabase;

  constructor(options: ArchiveOptions, environment: ArchiveEnvironment, folder: RunFolder) {
    this.#options = options;
    this.#environment = environment;
    this.#folder = folder;
    this.#run = new RunDatabase(folder.database);
  }

  async execute(): Promise<ArchiveResult> {
    const { api } = this.#environment.session;
    if (this.#options.dryRun) {
      const context = this.#context('cool');
      await this.#files(context);
      return this.#result(null, false, undefined);
    }
    const run = await api.startRun({
      runId: this.#runId,
      source: this.#options.source,
      ...(this.#options.tier === undefined ? {} : { tier: this.#options.tier }),
    });
    const context = this.#context(run.tier);
    await this.#files(context);
    this.#reportFilesWithoutContent(context);
    this.#environment.onPhase('filetrees');
    const rootHash = await buildFiletrees(this.#run, context.hasher, context.signal);
    if (rootHash !== undefined && (this.#offersAll || rootHash !== run.newestSnapshot?.rootHash)) {
      await this.#uploadFiletrees(context, run);
    }
    return await this.#complete(api, rootHash);
  }

  async #files(context: ArchiveContext): Promise<void> {
    const { cache, fileSystems, abort, counters, hooks } = this.#environment;
    this.#environment.onPhase('files');
    await runRounds({
      context,
      abort,
      dryRun: this.#options.dryRun,
      hasher: new FileHasher({
        hasher: context.hasher,
        cache,
        fileSystems,
        mode: this.#options.hashMode,
        signal: context.signal,
        onBytes(bytes) {
          counters.bytesHashed += bytes;
        },
        ...(hooks?.afterHash === undefined ? {} : { afterRead: hooks.afterHash }),
      }),
      scanned: scan({
        root: this.#options.folder,
        run: this.#run,
        exclusions: this.#options.exclusions,
        ownFolders: this.#options.ownFolders,
        onSkip: (skip) => this.#onSkip(skip),
        onEmptyFolder() {
          counters.emptyFolders++;
        },
      }),
    });
    cache.flush();
  }

  #onSkip(skip: Skip): void {
    const { counters, report } = this.#environment;
    if (FAILED_SKIPS.has(skip.reason)) {
      counters.filesFailed++;
    } else {
      counters.filesExcluded++;
    }
    report.skipped(skip);
  }

  /** These have no entry in the tree: what a snapshot names must be stored. */
  #reportFilesWithoutContent(context: ArchiveContext): void {
    const { counters, report } = this.#environment;
    for (let afterId = 0; ; ) {
      const files = context.run.filesWithoutContent(afterId, DIRECTORY_ENTRIES_PER_PAGE);
      for (const file of files) {
        if (file.pointer) {
          counters.filesFailed++;
          report.pointerWithoutChunk(file.path);
        } else if (file.content === 'waiting') {
          counters.filesWaiting++;
          report.waiting(file.path, "another writer's unfinished upload is in its place");
        } else {
          counters.filesFailed++;
          report.failed(file.path, 'its content could not be stored');
        }
        afterId = file.id;
      }
      if (files.length === 0) {
        return;
      }
    }
  }

  /** Believes nothing that was found before. */
  get #offersAll(): boolean {
    return this.#options.hashMode === 'all';
  }

  async #uploadFiletrees(context: ArchiveContext, run: RunInfo): Promise<void> {
    const { uploadFiletrees } = await import('./upload-filetrees.ts');
    if (run.newestSnapshot !== null && !this.#offersAll) {
      await markKnownFiletrees({
        run: this.#run,
        newest: run.newestSnapshot,
        source: this.#options.source,
        cache: this.#environment.cache,
        reader: new FiletreeReader(context),
      });
    }
    await uploadFiletrees(context);
  }

  async #complete(api: RepositoryApi, rootHash: FileTreeHash | undefined): Promise<ArchiveResult> {
    const { onPhase, onOperation, cache } = this.#environment;
    onPhase('completing');
    const { fileCount, bytes } = this.#run.totals();
    const started = await api.completeRun(this.#runId, {
      rootHash: rootHash ?? null,
      fileCount,
      originalSize: bytes,
    });
    const operation = await api.waitFor(started, { onProgress: onOperation });
    onPhase('done');
    const result = this.#result(rootHash ?? null, true, operation);
    if (result.snapshot !== null && rootHash !== undefined) {
      cache.rememberSnapshot(this.#options.source, result.snapshot, this.#run.nodeHashes());
    }
    return result;
  }

  #result(rootHash: string | null, completed: boolean, operation: OperationInfo | undefined): ArchiveResult {
    const totals = this.#run.totals();
    if (!completed || operation === undefined) {
      return {
        runId: this.#runId,
        snapshot: null,
        snapshotPublished: false,
        fileCount: totals.fileCount,
        bytes: totals.bytes,
        shardsWritten: 0,
        shardsSplit: 0,
        indexBytesWritten: 0,
        serviceRequests: {},
      };
    }
    const parsed = completeRunResult.safeParse(operation.result);
    if (!parsed.success) {
      throw new AriusError(
        'internal',
        `The service completed ${rootHash ?? 'the run'} but did not say how.`,
        'Check that agent and service are of one version.',
      );
    }
    const { storageRequests, ...rest } = parsed.data;
    return {
      runId: this.#runId,
      snapshot: rest.snapshot,
      snapshotPublished: rest.snapshotPublished,
      fileCount: totals.fileCount,
      bytes: totals.bytes,
      shardsWritten: rest.shardsWritten,
      shardsSplit: rest.shardsSplit,
      indexBytesWritten: rest.indexBytesWritten,
      serviceRequests: storageRequests,
    };
  }

  /** A dry run has no run at the service; and in a repository that is only imagined nothing is known. */
  async #lookup(hashes: readonly ContentHash[]): Promise<readonly ShardEntryDto[]> {
    const { session } = this.#environment;
    if (session.found === 'imagined') {
      return [];
    }
    const runId = this.#options.dryRun ? {} : { runId: this.#runId };
    return (await session.api.lookup(hashes, { purpose: 'archive', ...runId })).known;
  }

  #context(tier: UploadTier): ArchiveContext {
    const { session, counters, report, abort, hooks } = this.#environment;
    return {
      root: this.#options.folder,
      runId: this.#runId,
      tier,
      api: session.api,
      blobs: session.blobs,
      codec: session.codec,
      hasher: session.hasher,
      run: this.#run,
      spool: this.#folder.spool,
      lookup: (hashes) => this.#lookup(hashes),
      counters,
      report,
      signal: abort.signal,
      ...(hooks?.beforeCarrierRead === undefined ? {} : { beforeCarrierRead: hooks.beforeCarrierRead }),
    };
  }
}
