/**
 * Downloads what is needed, each chunk once: a large one for all files with its content, a tar for all of its members
 * that are wanted. Every file that was expected in a chunk is accounted for.
 */

import pMap from 'p-map';
import type { BodyCodec } from '../../codec/body-codec.ts';
import { BodyCorruptError } from '../../codec/errors.ts';
import { AriusError } from '../../errors.ts';
import type { Hasher } from '../../hashing/hasher.ts';
import type { ChunkHash, ContentHash } from '../../hashing/hashes.ts';
import {
  BODY_DOWNLOAD_ATTEMPTS_MAX,
  DIRECTORY_ENTRIES_PER_PAGE,
  HASHES_PER_LOOKUP_MAX,
  RESTORE_CHUNK_WORKERS,
  TAR_DECODED_BYTES_MAX,
} from '../../limits.ts';
import { chunkBlobName } from '../../repository/blob-names.ts';
import { readTarBundle } from '../../repository/tar-bundle.ts';
import { reasonOf } from '../files/system-errors.ts';
import { BlobArchivedError, type BlobClient, BlobMissingError } from '../transport/blob-client.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import type { RestoreCounters, RestoreReport } from './restore.ts';
import type { PlannedFile, RestorePlan, RestoreState } from './restore-plan.ts';
import { FileNotWritableError, type RestoreTarget, WrongContentError } from './restore-target.ts';

export interface DownloadOptions {
  readonly plan: RestorePlan;
  readonly target: RestoreTarget;
  readonly api: RepositoryApi;
  readonly blobs: BlobClient;
  readonly codec: BodyCodec;
  readonly hasher: Hasher;
  readonly counters: RestoreCounters;
  readonly report: RestoreReport;
  readonly signal: AbortSignal;
}

/** Asks the index where the needed contents lie. A content it does not know cannot be restored. */
export async function locateContents(
  options: Pick<DownloadOptions, 'plan' | 'api' | 'counters' | 'report'>,
): Promise<void> {
  const { plan, api } = options;
  for (let after: ContentHash | undefined; ; ) {
    const contents = plan.neededContents(after, HASHES_PER_LOOKUP_MAX);
    const last = contents.at(-1);
    if (last === undefined) {
      return;
    }
    const { known, missing } = await api.lookup(contents, { purpose: 'restore' });
    for (const entry of known) {
      plan.locate(entry.contentHash as ContentHash, entry.chunkHash as ChunkHash, entry.originalSize);
    }
    for (const hash of missing) {
      settleFiles(
        options,
        (afterId) => plan.filesOfContent(hash as ContentHash, afterId, DIRECTORY_ENTRIES_PER_PAGE),
        'failed',
        'the chunk index does not know its content; run `arius-agent repair`, then restore again',
      );
    }
    after = last;
  }
}

export async function downloadChunks(options: DownloadOptions): Promise<void> {
  for (let after: ChunkHash | undefined; ; ) {
    const chunks = options.plan.chunks(after, DIRECTORY_ENTRIES_PER_PAGE);
    const last = chunks.at(-1);
    if (last === undefined) {
      return;
    }
    await pMap(chunks, (chunk) => restoreChunk(options, chunk), {
      concurrency: RESTORE_CHUNK_WORKERS,
      signal: options.signal,
    });
    after = last;
  }
}

async function restoreChunk(options: DownloadOptions, chunk: ChunkHash): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const first = options.plan.firstOfChunk(chunk);
    if (first === undefined) {
      return;
    }
    try {
      const large = (first.content as string) === (chunk as string);
      await (large ? restoreLarge(options, chunk, first) : restoreTar(options, chunk));
      settleChunk(options, chunk, 'failed', 'the chunk that should hold it does not; archive the file again');
      return;
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof BlobArchivedError) {
        options.counters.chunksPending++;
        settleChunk(options, chunk, 'pending', 'its chunk is in the archive tier and must be rehydrated first');
        return;
      }
      if (error instanceof FileNotWritableError) {
        settleChunk(options, chunk, 'failed', reasonOf(error));
        return;
      }
      if (error instanceof BlobMissingError) {
        settleChunk(options, chunk, 'failed', `its chunk ${chunk} is missing from the repository`);
        return;
      }
      if (error instanceof AriusError && error.code !== 'blob-corrupt') {
        throw error;
      }
      if (attempt >= BODY_DOWNLOAD_ATTEMPTS_MAX) {
        settleChunk(options, chunk, 'failed', whyDamaged(error, chunk));
        return;
      }
    }
  }
}

async function restoreLarge(options: DownloadOptions, chunk: ChunkHash, first: PlannedFile): Promise<void> {
  const body = await open(options, chunk);
  await restoreContent(options, options.codec.decodeStream(body, first.sizeBytes), first.content);
}

async function restoreTar(options: DownloadOptions, chunk: ChunkHash): Promise<void> {
  const body = await open(options, chunk);
  for await (const member of readTarBundle(options.codec.decodeStream(body, TAR_DECODED_BYTES_MAX))) {
    if (options.plan.filesOfContent(member.contentHash, 0, 1).length > 0) {
      await restoreMember(options, member.body, member.contentHash);
    }
  }
}

/** A member with the wrong bytes was packed wrong; the tar's own checks hold, so trying again would not help. */
async function restoreMember(
  options: DownloadOptions,
  body: AsyncIterable<Uint8Array>,
  content: ContentHash,
): Promise<void> {
  try {
    await restoreContent(options, body, content);
  } catch (error) {
    if (!(error instanceof WrongContentError)) {
      throw error;
    }
    settleFiles(
      options,
      (afterId) => options.plan.filesOfContent(content, afterId, DIRECTORY_ENTRIES_PER_PAGE),
      'failed',
      `what its tar holds for it is wrong (${reasonOf(error)})`,
    );
  }
}

async function open(options: DownloadOptions, chunk: ChunkHash): Promise<AsyncIterable<Uint8Array>> {
  return options.blobs.read(await options.api.readGrant(chunkBlobName(chunk)));
}

/** Writes one content to every file that needs it: from the download to the first, from there to the others. */
async function restoreContent(
  options: DownloadOptions,
  source: AsyncIterable<Uint8Array>,
  content: ContentHash,
): Promise<void> {
  const { plan, target, hasher } = options;
  const received = await target.receive(source, content, hasher);
  let restored: string | undefined;
  for (let afterId = 0; ; ) {
    const files = plan.filesOfContent(content, afterId, DIRECTORY_ENTRIES_PER_PAGE);
    for (const file of files) {
      options.signal.throwIfAborted();
      afterId = file.id;
      const from = restored;
      const placed = await settleWritten(options, file, async () => {
        const temporary = from === undefined ? received : await target.copy(from, content, hasher);
        await target.place(temporary, file.path, file.modifiedTicks);
      });
      restored ??= placed ? file.path : undefined;
    }
    if (files.length === 0) {
      return;
    }
  }
}

/** A file that cannot be written concerns itself alone. */
async function settleWritten(
  options: DownloadOptions,
  file: PlannedFile,
  write: () => Promise<void>,
): Promise<boolean> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof FileNotWritableError) && !(error instanceof WrongContentError)) {
      throw error;
    }
    options.plan.setState(file.id, 'failed');
    options.report.failed(file.path, reasonOf(error));
    return false;
  }
  options.plan.setState(file.id, 'restored');
  options.counters.filesRestored++;
  options.counters.bytesRestored += file.sizeBytes;
  options.report.restored(file.path);
  return true;
}

function settleChunk(options: DownloadOptions, chunk: ChunkHash, state: RestoreState, why: string): void {
  settleFiles(options, (afterId) => options.plan.filesOfChunk(chunk, afterId, DIRECTORY_ENTRIES_PER_PAGE), state, why);
}

/** All files that are still needed get the same end. */
function settleFiles(
  options: Pick<DownloadOptions, 'plan' | 'report'>,
  page: (afterId: number) => PlannedFile[],
  state: RestoreState,
  why: string,
): void {
  for (let files = page(0); files.length > 0; files = page(files.at(-1)?.id ?? 0)) {
    for (const file of files) {
      options.plan.setState(file.id, state);
      if (state === 'pending') {
        options.report.pending(file.path, why);
      } else {
        options.report.failed(file.path, why);
      }
    }
  }
}

function whyDamaged(error: unknown, chunk: ChunkHash): string {
  const damaged =
    error instanceof BodyCorruptError || error instanceof AriusError || error instanceof WrongContentError;
  return damaged
    ? `its chunk ${chunk} is damaged (${reasonOf(error)})`
    : `its chunk ${chunk} could not be downloaded (${reasonOf(error)})`;
}
