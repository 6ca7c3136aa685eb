/**
 * The HTTP contract between agent and service: the schemas both sides check with, and the source of `openapi.json`.
 * Sizes are bytes, times ISO 8601 UTC, hashes 64 lower-case hex characters. Fields may be added; none changes meaning.
 */

import { z } from 'zod';
import {
  ENTRIES_PER_CALL_MAX,
  HASHES_PER_LOOKUP_MAX,
  MEMBERS_PER_CALL_MAX,
  NAMES_PER_GRANT_MAX,
  SMALL_FILE_BYTES_MAX_EXCLUSIVE,
} from '../limits.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 lower-case hex characters');
const size = z.int().min(0);
const time = z.iso.datetime({ offset: true });
/** The upload tiers an agent may choose; `archive` is refused until restore from it exists. */
export const uploadTier = z.enum(['hot', 'cool', 'cold']);
const accessTier = z.enum(['hot', 'cool', 'cold', 'archive']);

/** A container name of Azure (3 to 63 characters), so that one repository is one container. */
export const repositoryName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9])){2,62}$/,
    'expected 3 to 63 lower-case letters, digits and single hyphens',
  );
/** `host:absolute folder`, or what the user chose. */
export const sourceName = z
  .string()
  .min(1)
  .max(1024)
  .regex(/^[^\p{Cc}]*$/u, 'control characters are not allowed');
const runId = z.uuid();
/** Leaf name of a snapshot blob, e.g. `2026-03-22T150000.000Z`. */
const snapshotName = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{6}\.\d{3}Z$/, 'expected a snapshot name');
const operationId = z.string().regex(/^[0-9a-z-]{1,120}$/, 'expected the id of an operation');

/** What may stand in a path, by the name the route template gives it. */
export const pathParameters = { repository: repositoryName, runId, hash, name: snapshotName, operationId } as const;

export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string(),
  detail: z.string(),
  next: z.string(),
  retryAfterSeconds: z.number().optional(),
});

// --- Health ---------------------------------------------------------------------------------------------------------

export const health = z.object({ status: z.literal('ok'), version: z.string(), time });

// --- Repositories ---------------------------------------------------------------------------------------------------

export const createRepositoryRequest = z.strictObject({
  name: repositoryName,
  kind: z.enum(['plain', 'sealed']),
  /** The tier chunks go to when a run does not say; default `cool`. */
  tier: uploadTier.optional(),
});

/** Takes over a container that another client wrote. */
export const adoptRepositoryRequest = z.strictObject({ tier: uploadTier.optional() });

export const repository = z.object({
  name: repositoryName,
  kind: z.enum(['plain', 'sealed']),
  tier: uploadTier,
  createdAt: time,
  /** Name of the newest snapshot, without prefix; null before the first. */
  epoch: z.string().nullable(),
  /** Base64 of a sealed constant or, for an adopted container, of its newest snapshot: opening it proves a passphrase. */
  passphraseProof: z.string().nullable(),
});

export const repositoryList = z.object({ repositories: z.array(repository) });

// --- Runs -----------------------------------------------------------------------------------------------------------

export const startRunRequest = z.strictObject({ runId, source: sourceName, tier: uploadTier.optional() });

export const snapshot = z.object({
  /** The blob's leaf name, e.g. `2026-03-22T150000.000Z`; order of names is order of time. */
  name: z.string(),
  timestamp: time,
  rootHash: hash,
  fileCount: z.int().min(0),
  originalSize: size,
  ariusVersion: z.string(),
  /** Null for a snapshot that another client wrote. */
  source: z.string().nullable(),
  runId: z.string().nullable(),
});

export const run = z.object({
  runId,
  repository: repositoryName,
  source: sourceName,
  state: z.enum(['started', 'completing', 'completed', 'failed', 'expired']),
  tier: uploadTier,
  startedAt: time,
  /** The newest snapshot of this source when the run started: its unchanged subtrees are not uploaded again. */
  newestSnapshot: snapshot.nullable(),
  operationId: z.string().nullable(),
  /** The snapshot this run ended with: its own, or the newest one when nothing had changed. */
  snapshot: z.string().nullable(),
});

export const completeRunRequest = z.strictObject({
  /** Null: the folder held no file, so there is nothing to publish. */
  rootHash: hash.nullable(),
  fileCount: z.int().min(0),
  originalSize: size,
});

// --- Chunk index ----------------------------------------------------------------------------------------------------

export const shardEntry = z.object({
  contentHash: hash,
  chunkHash: hash,
  originalSize: size,
  chunkSize: size,
  tier: accessTier,
});

export const lookupRequest = z.strictObject({
  hashes: z.array(hash).min(1).max(HASHES_PER_LOOKUP_MAX),
  /** `archive` (default): a miss will be uploaded. `restore`: refused while a repair of an affected root is unfinished. */
  purpose: z.enum(['archive', 'restore']).optional(),
  /** The asking run: lookup then also finds chunks that an unfinished run left committed but unrecorded. */
  runId: runId.optional(),
});

export const lookupResponse = z.object({ known: z.array(shardEntry), missing: z.array(hash) });

// --- Grants ---------------------------------------------------------------------------------------------------------

/** `chunks/{hash}`, `filetrees/{hash}`; nothing else is ever granted to an agent by name. */
const grantName = z
  .string()
  .regex(/^(?:chunks|filetrees)\/[0-9a-f]{64}$/, 'expected chunks/{hash} or filetrees/{hash}');

export const grantRequest = z.strictObject({
  /** `create`: one Put Blob with `If-None-Match: *`; a blob that exists cannot be touched. `read`: one blob's bytes. */
  purpose: z.enum(['create', 'read']),
  names: z.array(grantName).min(1).max(NAMES_PER_GRANT_MAX),
});

const grant = z.object({ name: z.string(), url: z.url(), expiresAt: time });
export const grantResponse = z.object({ grants: z.array(grant) });

/** For a body above 256 MiB: where its blocks may be staged, or that it is not needed. */
export const stagingGrantRequest = z.strictObject({ contentHash: hash, runId });
export const stagingGrantResponse = z.union([
  z.object({ outcome: z.literal('exists'), entry: shardEntry }),
  z.object({ outcome: z.literal('granted'), stagingName: z.string(), url: z.url(), expiresAt: time }),
]);

// --- Entries --------------------------------------------------------------------------------------------------------

export const entriesRequest = z.strictObject({
  runId,
  /** Large chunks whose upload ended (created, or found present). */
  contentHashes: z.array(hash).min(1).max(ENTRIES_PER_CALL_MAX),
});

export const entryResult = z.object({
  contentHash: hash,
  /**
   * `recorded`: committed and known from now on. `absent`: nothing is there, upload it (again).
   * `debris`: a body without sentinel, too young to remove: another writer may be at work; ask again after `retryAt`.
   * `conflict`: the name is taken by a chunk through which this content cannot be read, as `detail` says; it cannot be
   * stored, now or later. It concerns this content alone.
   */
  outcome: z.enum(['recorded', 'debris', 'absent', 'conflict']),
  entry: shardEntry.optional(),
  retryAt: time.optional(),
  detail: z.string().optional(),
});

export const entriesResponse = z.object({ results: z.array(entryResult) });

export const membersRequest = z.strictObject({
  runId,
  members: z
    .array(
      z.strictObject({
        contentHash: hash,
        originalSize: z
          .int()
          .min(0)
          .max(SMALL_FILE_BYTES_MAX_EXCLUSIVE - 1),
      }),
    )
    .min(1)
    .max(MEMBERS_PER_CALL_MAX),
});

export const membersResponse = z.object({
  /**
   * `absent`/`debris`/`conflict` speak of the tar itself: no member was touched then. `conflict`: another kind of chunk
   * has the name of the tar, as `detail` says; the members cannot be stored in this tar.
   */
  tar: z.object({
    outcome: z.enum(['committed', 'debris', 'absent', 'conflict']),
    retryAt: time.optional(),
    detail: z.string().optional(),
  }),
  results: z.array(entryResult),
});

export const commitChunkRequest = z.strictObject({
  runId,
  stagingName: z.string().max(1024),
  originalSize: size,
  /** Bytes of the staged body, which the service compares with what it finds. */
  chunkSize: size,
});

// --- Operations -----------------------------------------------------------------------------------------------------

const operationState = z.enum(['waiting', 'running', 'succeeded', 'failed']);

export const operation = z.object({
  operationId: z.string(),
  repository: repositoryName,
  kind: z.enum(['complete', 'flush', 'commit-chunk']),
  state: operationState,
  /** What is being done: waiting, planning, flushing, settling, verifying, publishing, promoting, assembling, done. */
  phase: z.string(),
  progress: z.object({ done: z.int(), total: z.int(), unit: z.string() }).nullable(),
  createdAt: time,
  updatedAt: time,
  result: z.record(z.string(), z.unknown()).nullable(),
  error: problem.nullable(),
});

/** `result` of a `complete` operation. */
export const completeRunResult = z.object({
  snapshot: z.string().nullable(),
  snapshotPublished: z.boolean(),
  entriesRecorded: z.int(),
  shardsWritten: z.int(),
  shardsSplit: z.int(),
  indexBytesWritten: size,
  storageRequests: z.record(z.string(), z.int()),
});

// --- Snapshots ------------------------------------------------------------------------------------------------------

export const snapshotList = z.object({
  snapshots: z.array(snapshot),
  continuation: z.string().nullable(),
  /** Snapshots of this page whose manifest cannot be read; they are left out of `snapshots`. */
  unreadable: z.array(z.object({ name: z.string(), reason: z.string() })).optional(),
});

// --- The document of this API ---------------------------------------------------------------------------------------

export const openApi = z.record(z.string(), z.unknown());

export type CreateRepositoryRequest = z.infer<typeof createRepositoryRequest>;
export type AdoptRepositoryRequest = z.infer<typeof adoptRepositoryRequest>;
export type RepositoryInfo = z.infer<typeof repository>;
export type StartRunRequest = z.infer<typeof startRunRequest>;
export type SnapshotInfo = z.infer<typeof snapshot>;
export type RunInfo = z.infer<typeof run>;
export type CompleteRunRequest = z.infer<typeof completeRunRequest>;
export type ShardEntryDto = z.infer<typeof shardEntry>;
export type LookupRequest = z.infer<typeof lookupRequest>;
export type LookupResponse = z.infer<typeof lookupResponse>;
export type GrantRequest = z.infer<typeof grantRequest>;
export type GrantResponse = z.infer<typeof grantResponse>;
export type StagingGrantRequest = z.infer<typeof stagingGrantRequest>;
export type StagingGrantResponse = z.infer<typeof stagingGrantResponse>;
export type EntriesRequest = z.infer<typeof entriesRequest>;
export type EntryResult = z.infer<typeof entryResult>;
export type EntriesResponse = z.infer<typeof entriesResponse>;
export type MembersRequest = z.infer<typeof membersRequest>;
export type MembersResponse = z.infer<typeof membersResponse>;
export type CommitChunkRequest = z.infer<typeof commitChunkRequest>;
export type OperationInfo = z.infer<typeof operation>;
export type CompleteRunResult = z.infer<typeof completeRunResult>;
export type SnapshotList = z.infer<typeof snapshotList>;
