/**
 * The pipeline of an archive run: scan → hash → deduplicate → pack and upload small files, upload large ones. The stages
 * overlap; the queues between them are bounded. A first round takes the scanned folder; further rounds take the files
 * that changed while they were read, and those whose content lost its carrier, until all have settled.
 */

import type { ContentHash } from '../../hashing/hashes.ts';
import {
  CARRIER_QUEUE_FILES_MAX,
  CHANGED_FILE_ATTEMPTS_MAX,
  DIRECTORY_ENTRIES_PER_PAGE,
  HASH_WINDOW_FILES_MAX,
  HASH_WORKERS,
  HASHES_PER_LOOKUP_MAX,
  LARGE_FILE_WORKERS,
  LOOKUP_BATCH_BYTES,
  SMALL_FILE_BYTES_MAX_EXCLUSIVE,
  SPOOLED_TARS_MAX,
} from '../../limits.ts';
import type { FileSignals } from '../files/file-signals.ts';
import type { FileHasher } from '../files/hash-files.ts';
import type { ScannedFile } from '../files/scan.ts';
import { codeOf } from '../files/system-errors.ts';
import { BoundedQueue } from '../pipeline/bounded-queue.ts';
import { allOrAbort, batches, orderedMap, workers } from '../pipeline/pipeline.ts';
import { localPathOf } from '../state/paths.ts';
import type { ArchiveContext, Carrier } from './archive-context.ts';
import { deduplicate, type HashedFile } from './deduplicate.ts';
import { EntryRecorder } from './entry-recorder.ts';
import { type PackedTar, TarPacker } from './pack.ts';
import { uploadLarge } from './upload-large.ts';
import { uploadTar } from './upload-tar.ts';

interface FileToHash {
  readonly fileId: number | undefined;
  readonly directoryId: number;
  readonly name: string;
  readonly path: string;
  readonly localPath: string;
  readonly signals: FileSignals | undefined;
  readonly attempts: number;
  readonly pointer: boolean;
}

export interface RoundsOptions {
  readonly context: ArchiveContext;
  readonly hasher: FileHasher;
  readonly abort: AbortController;
  readonly scanned: AsyncIterable<ScannedFile>;
  /** Counts what would be uploaded, and uploads nothing. */
  readonly dryRun: boolean;
}

/** Each round settles at least one attempt of every file that is left; then whatever is left never will. */
const ROUNDS_MAX = 2 * CHANGED_FILE_ATTEMPTS_MAX;

export async function runRounds(options: RoundsOptions): Promise<void> {
  const { context } = options;
  let nextTarId = await runRound(options, fromScan(context, options.scanned), 1);
  for (let round = 2; round <= ROUNDS_MAX; round++) {
    context.run.rehashFilesOfLostContents();
    if (context.run.filesAgain(0, 1).length === 0) {
      return;
    }
    nextTarId = await runRound(options, fromDatabase(context), nextTarId);
  }
}

async function runRound(
  options: RoundsOptions,
  source: AsyncIterable<FileToHash>,
  firstTarId: number,
): Promise<number> {
  const { context, abort } = options;
  const small = new BoundedQueue<Carrier>(CARRIER_QUEUE_FILES_MAX, context.signal);
  const large = new BoundedQueue<Carrier>(CARRIER_QUEUE_FILES_MAX, context.signal);
  const tars = new BoundedQueue<PackedTar>(SPOOLED_TARS_MAX, context.signal);
  const packer = new TarPacker(context, (tar) => tars.push(tar), firstTarId);
  const recorder = new EntryRecorder(context.api, context.runId);

  async function findCarriers(): Promise<void> {
    for await (const batch of hashedBatches(options, source)) {
      for (const carrier of await deduplicate(context, batch)) {
        if (options.dryRun) {
          context.report.archived(carrier.path, 'new');
        } else {
          await (carrier.sizeBytes < SMALL_FILE_BYTES_MAX_EXCLUSIVE ? small : large).push(carrier);
        }
      }
    }
    small.close();
    large.close();
  }
  async function pack(): Promise<void> {
    try {
      for await (const carrier of small) {
        await packer.add(carrier);
      }
      await packer.seal();
      tars.close();
    } finally {
      await packer.abandon();
    }
  }
  async function uploadTars(): Promise<void> {
    for await (const tar of tars) {
      await uploadTar(context, tar);
    }
  }
  async function uploadLargeFiles(): Promise<void> {
    for await (const carrier of large) {
      await uploadLarge(context, recorder, carrier);
    }
  }

  await allOrAbort([findCarriers(), pack(), uploadTars(), ...workers(LARGE_FILE_WORKERS, uploadLargeFiles)], abort);
  return packer.nextId;
}

async function* hashedBatches(
  options: RoundsOptions,
  source: AsyncIterable<FileToHash>,
): AsyncGenerator<HashedFile[], void, void> {
  const { context } = options;
  const hashed = orderedMap(
    source,
    { concurrency: HASH_WORKERS, window: HASH_WINDOW_FILES_MAX, signal: context.signal },
    (file) => hashFile(context, options.hasher, file),
  );
  const limits = {
    itemsMax: HASHES_PER_LOOKUP_MAX,
    weightMax: LOOKUP_BATCH_BYTES,
    weigh: (file: HashedFile | undefined) => file?.signals.sizeBytes ?? 0,
  };
  for await (const batch of batches(hashed, limits)) {
    yield batch.filter((file) => file !== undefined);
  }
}

/** Undefined: it cannot be archived, which has been reported. */
async function hashFile(
  context: ArchiveContext,
  hasher: FileHasher,
  file: FileToHash,
): Promise<HashedFile | undefined> {
  const localPath = localPathOf(context.root, file.localPath);
  if (file.pointer && file.signals !== undefined) {
    const contentHash = await pointedHash(context, hasher, file, localPath);
    return contentHash === undefined ? undefined : { ...file, signals: file.signals, contentHash, attempts: 1 };
  }
  const outcome = await hasher.hash(localPath, file.signals, file.attempts);
  context.counters.filesHashed++;
  if (outcome.changed && file.attempts === 0) {
    context.counters.filesChangedWhileReading++;
    context.report.changed(file.path);
  }
  if (outcome.kind === 'failed') {
    context.counters.filesFailed++;
    context.report.failed(file.path, outcome.why);
    if (file.fileId !== undefined) {
      context.run.setFileState(file.fileId, 'failed');
    }
    return undefined;
  }
  return { ...file, signals: outcome.signals, contentHash: outcome.contentHash, attempts: outcome.attempts };
}

async function pointedHash(
  context: ArchiveContext,
  hasher: FileHasher,
  file: FileToHash,
  localPath: string,
): Promise<ContentHash | undefined> {
  let why = 'this pointer file does not hold a content hash';
  try {
    const contentHash = await hasher.pointer(localPath);
    if (contentHash !== undefined) {
      return contentHash;
    }
  } catch (error) {
    why = `this pointer file cannot be read (${codeOf(error)})`;
  }
  context.counters.filesFailed++;
  context.report.failed(file.localPath, why);
  return undefined;
}

async function* fromScan(
  context: ArchiveContext,
  scanned: AsyncIterable<ScannedFile>,
): AsyncGenerator<FileToHash, void, void> {
  for await (const file of scanned) {
    context.counters.filesScanned++;
    context.counters.bytesScanned += file.signals.sizeBytes;
    yield { ...file, fileId: undefined, attempts: 0 };
  }
  context.counters.scanDone = true;
}

async function* fromDatabase(context: ArchiveContext): AsyncGenerator<FileToHash, void, void> {
  for (let afterId = 0; ; ) {
    const files = context.run.filesAgain(afterId, DIRECTORY_ENTRIES_PER_PAGE);
    for (const file of files) {
      yield { ...file, fileId: file.id, localPath: file.path, signals: undefined, pointer: false };
      afterId = file.id;
    }
    if (files.length === 0) {
      return;
    }
  }
}
