/**
 * Decides for each hashed file whether its content must be uploaded. One file becomes the carrier of a content that is
 * not stored; every other file with it waits in the run database, and enters the tree only when the content is stored.
 */

import type { ContentHash } from '../../hashing/hashes.ts';
import { type FileSignals, treeTimes } from '../files/file-signals.ts';
import type { ArchiveContext, Carrier } from './archive-context.ts';
import type { FileRow } from './run-database.ts';

export interface HashedFile {
  /** Of a file that is in the run database already and was hashed again. */
  readonly fileId: number | undefined;
  readonly directoryId: number;
  readonly name: string;
  readonly path: string;
  readonly signals: FileSignals;
  readonly contentHash: ContentHash;
  readonly attempts: number;
  readonly pointer: boolean;
}

export async function deduplicate(context: ArchiveContext, batch: readonly HashedFile[]): Promise<Carrier[]> {
  const sizes = await askForUnseen(context, batch);
  const carriers: Carrier[] = [];
  for (const file of batch) {
    const fileId = store(context, file, sizes.get(file.contentHash));
    const state = context.run.contentState(file.contentHash);
    if (fileId === undefined) {
      context.report.failed(file.path, 'another file stands for the same name');
      context.counters.filesFailed++;
    } else if (state === 'known') {
      context.counters.filesUnchanged++;
      context.report.archived(file.path, 'unchanged');
    } else if (!file.pointer && (state === undefined || state === 'lost')) {
      context.run.setContent(file.contentHash, 'queued');
      context.counters.filesNew++;
      context.counters.bytesNew += file.signals.sizeBytes;
      carriers.push({
        fileId,
        path: file.path,
        sizeBytes: file.signals.sizeBytes,
        contentHash: file.contentHash,
        attempts: file.attempts,
      });
    } else if (state === undefined || state === 'lost') {
      // Only a pointer file speaks of this content. A file of this run may still bring it.
      context.run.setContent(file.contentHash, 'lost');
    } else {
      context.counters.filesNew++;
      context.report.archived(file.path, 'duplicate');
    }
  }
  return carriers;
}

/** Looks up the contents this run has not met, and notes the known ones. Returns the sizes the index has for them. */
async function askForUnseen(
  context: ArchiveContext,
  batch: readonly HashedFile[],
): Promise<ReadonlyMap<string, number>> {
  const unseen = new Set<ContentHash>();
  for (const { contentHash, pointer } of batch) {
    const state = context.run.contentState(contentHash);
    if (state === undefined || (pointer && state === 'known')) {
      unseen.add(contentHash);
    }
  }
  if (unseen.size === 0) {
    return new Map();
  }
  const known = await context.lookup([...unseen]);
  for (const entry of known) {
    context.run.setContent(entry.contentHash as ContentHash, 'known');
  }
  return new Map(known.map((entry) => [entry.contentHash, entry.originalSize]));
}

function store(context: ArchiveContext, file: HashedFile, indexedBytes: number | undefined): number | undefined {
  const row: FileRow = {
    directoryId: file.directoryId,
    name: file.name,
    // A pointer file's own size says nothing about the file it stands for.
    sizeBytes: file.pointer ? (indexedBytes ?? 0) : file.signals.sizeBytes,
    ...treeTimes(file.signals),
    content: file.contentHash,
    state: 'hashed',
    attempts: file.attempts,
    pointer: file.pointer,
  };
  if (file.fileId !== undefined) {
    context.run.rehashFile(file.fileId, row);
    return file.fileId;
  }
  return context.run.addFile(row);
}
