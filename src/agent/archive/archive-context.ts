/** What the stages of one archive run share. */

import type { BodyCodec } from '../../codec/body-codec.ts';
import type { ShardEntryDto } from '../../contract/schemas.ts';
import type { Hasher } from '../../hashing/hasher.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import type { Skip } from '../files/scan.ts';
import type { BlobClient } from '../transport/blob-client.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import type { RunDatabase } from './run-database.ts';
import type { Spool } from './spool.ts';

export type UploadTier = 'hot' | 'cool' | 'cold';

/** Counters of a run; the summary and the live display read them. Sizes are bytes. */
export interface ArchiveCounters {
  filesScanned: number;
  bytesScanned: number;
  scanDone: boolean;
  filesExcluded: number;
  emptyFolders: number;
  filesHashed: number;
  bytesHashed: number;
  filesNew: number;
  bytesNew: number;
  filesUnchanged: number;
  filesChangedWhileReading: number;
  filesFailed: number;
  filesWaiting: number;
  chunksUploaded: number;
  /** Bodies this run created, as stored: chunks and filetrees. */
  bytesUploaded: number;
  tarsUploaded: number;
  thinChunks: number;
  filetreesUploaded: number;
  entriesRecorded: number;
}

export function newCounters(): ArchiveCounters {
  return {
    filesScanned: 0,
    bytesScanned: 0,
    scanDone: false,
    filesExcluded: 0,
    emptyFolders: 0,
    filesHashed: 0,
    bytesHashed: 0,
    filesNew: 0,
    bytesNew: 0,
    filesUnchanged: 0,
    filesChangedWhileReading: 0,
    filesFailed: 0,
    filesWaiting: 0,
    chunksUploaded: 0,
    bytesUploaded: 0,
    tarsUploaded: 0,
    thinChunks: 0,
    filetreesUploaded: 0,
    entriesRecorded: 0,
  };
}

/** What a user is told about single files, as it happens. Paths are below the archived folder. */
export interface ArchiveReport {
  /** Whether `archived` is shown to anyone: finding the path of a stored tar member costs a query. */
  readonly verbose: boolean;
  skipped(skip: Skip): void;
  changed(path: string): void;
  failed(path: string, why: string): void;
  waiting(path: string, why: string): void;
  pointerWithoutChunk(path: string): void;
  archived(path: string, action: 'new' | 'unchanged' | 'duplicate'): void;
}

export interface ArchiveContext {
  /** The archived folder. */
  readonly root: string;
  readonly runId: string;
  readonly tier: UploadTier;
  readonly api: RepositoryApi;
  readonly blobs: BlobClient;
  readonly codec: BodyCodec;
  readonly hasher: Hasher;
  readonly run: RunDatabase;
  readonly spool: Spool;
  /** Which of these contents the repository holds. */
  lookup(hashes: readonly ContentHash[]): Promise<readonly ShardEntryDto[]>;
  readonly counters: ArchiveCounters;
  readonly report: ArchiveReport;
  readonly signal: AbortSignal;
  /** Tests: called right before a carrier's bytes are read for upload. */
  readonly beforeCarrierRead?: (path: string) => Promise<void>;
}

/** The file whose bytes are uploaded for a content that is not stored yet. */
export interface Carrier {
  readonly fileId: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly contentHash: ContentHash;
  /** How often it was hashed; more than once when it has been reported as changed before. */
  readonly attempts: number;
}

/** The carrier has other bytes by now: it is hashed again later, and its content may find another carrier. */
export function carrierChanged(context: ArchiveContext, carrier: Carrier): void {
  if (carrier.attempts === 1) {
    context.report.changed(carrier.path);
    context.counters.filesChangedWhileReading++;
  }
  context.run.setFileState(carrier.fileId, 'again');
  context.run.setContent(carrier.contentHash, 'lost');
}

/** The carrier cannot be read (any more), or its content cannot be stored. */
export function carrierFailed(
  context: ArchiveContext,
  carrier: Pick<Carrier, 'fileId' | 'path' | 'contentHash'>,
  why: string,
): void {
  context.report.failed(carrier.path, why);
  context.counters.filesFailed++;
  context.run.setFileState(carrier.fileId, 'failed');
  context.run.setContent(carrier.contentHash, 'lost');
}
