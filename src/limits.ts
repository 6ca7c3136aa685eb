/**
 * Every limit of the product, each with its reason. A number that bounds a loop, a queue, a retry, a page or a
 * payload belongs here and nowhere else.
 */

const KIB = 1024;
const MIB = 1024 * KIB;

// --- Repository format (fixed: other clients rely on them) ---------------------------------------------------------

/** Files of this size or more become a large chunk of their own. Fixed by the repository format. */
export const SMALL_FILE_BYTES_MAX_EXCLUSIVE = 1 * MIB;
/** A tar bundle is sealed after the member that brings its file data to this size. Fixed by the repository format. */
export const TAR_TARGET_BYTES = 64 * MIB;
/** The shortest shard prefix, in hex characters: 256 roots. Fixed by the repository format. */
export const MIN_SHARD_PREFIX_LENGTH = 2;
/** A shard with more entries than this is split 16-way. Fixed by the repository format. */
export const MAX_SHARD_ENTRY_COUNT = 1024;
/** Coverage claims are kept for prefixes up to this length; a deeper one revalidates, which is harmless. */
export const MAX_COVERAGE_PREFIX_LENGTH = 8;
/** PBKDF2 rounds written into an `ArGCM1` header; the format's fixed cost of guessing a passphrase. */
export const PBKDF2_ITERATIONS_WRITTEN = 100_000;
/** Above this a header is refused before a key is derived: it could only be an attempt to stall the reader. */
export const PBKDF2_ITERATIONS_MAX = 10_000_000;
/** Derived keys a process keeps (about 300 bytes each): the salts of the writers whose bodies it reads. */
export const DERIVED_KEYS_MAX = 4096;
/** Bodies written under one salt before a new one is drawn; see docs/decisions/0001-one-salt-per-process.md. */
export const BODIES_PER_SALT_MAX = 2 ** 20;
/** The most one zstd block decodes to. Fixed by the zstd format. */
export const ZSTD_BLOCK_BYTES_MAX = 128 * KIB;
/** The largest window a frame may ask a decoder to hold: the decoders' own default. */
export const ZSTD_WINDOW_BYTES_MAX = 128 * MIB;
/** Levels above 19 need windows and memory that a NAS has not. */
export const ZSTD_LEVEL_MAX = 19;
/**
 * Chunks. Measured (bench/codec.ts, scripts and a binary): 11 % smaller than level 3 for twice the time, which is still
 * several times faster than a home uplink; level 9 gives 8 % more for another half, level 15 takes 24 times as long.
 */
export const ZSTD_LEVEL_STREAM_DEFAULT = 6;
/** Shards, filetrees and snapshots. Measured: mostly hashes, so level 1 is as small as level 9, and five times as fast. */
export const ZSTD_LEVEL_BUFFER_DEFAULT = 1;

/** The records of one extended tar header: a path and a time; anything near this is not a bundle of ours or Arius 7's. */
export const PAX_HEADER_BYTES_MAX = 64 * KIB;

// --- Decoded sizes: what a body may expand to, counted while decoding ----------------------------------------------

/** A shard: 1024 entries take about 200 KiB; one that no client split may be far larger and must still be read. */
export const SHARD_DECODED_BYTES_MAX = 64 * MIB;
/** A filetree node or a snapshot: one directory of about a million entries. */
export const FILETREE_DECODED_BYTES_MAX = 256 * MIB;
export const SNAPSHOT_DECODED_BYTES_MAX = 64 * KIB;
/** Room for the tar framing of a bundle that holds TAR_TARGET_BYTES of data in empty and tiny files. */
export const TAR_DECODED_BYTES_MAX = 512 * MIB;

// --- Concurrency --------------------------------------------------------------------------------------------------

/** Roots loaded at a time by one lookup request. */
export const PREFIX_LOAD_WORKERS = 8;
/** Shard uploads in flight per instance during a flush: bounds the cost of a split storm. */
export const FLUSH_WORKERS = 32;
/** Pending rows read by key at a time. */
export const PENDING_READ_WORKERS = 32;
/** Chunks asked for their properties at a time by one request. */
export const CHUNK_HEAD_WORKERS = 32;
/** A chunk that changes under the service between look and deed is looked at again this often, then answered as busy. */
export const CHUNK_LOOKS_MAX = 4;
/** Snapshot manifests read at a time. */
export const SNAPSHOT_LOAD_WORKERS = 8;
/** Scratch blobs of an ended job removed at a time. */
export const STAGING_DELETE_WORKERS = 16;
/** Thin stubs written at a time by one members request. */
export const THIN_STUB_WORKERS = 32;
/** Children of one orchestration instance: history length, and with it replay cost, grows with this. */
export const ORCHESTRATION_CHILDREN_MAX = 16;

// --- Requests -----------------------------------------------------------------------------------------------------

export const HASHES_PER_LOOKUP_MAX = 1000;
export const ENTRIES_PER_CALL_MAX = 1000;
export const MEMBERS_PER_CALL_MAX = 1000;
export const NAMES_PER_GRANT_MAX = 100;
export const SNAPSHOTS_PER_PAGE_MAX = 1000;
/** A JSON request body: 1000 members are about 150 KiB. */
export const REQUEST_BODY_BYTES_MAX = 1 * MIB;
/** Up to this size a chunk is one Put Blob under a create-only grant; above it is staged in blocks. */
export const SINGLE_UPLOAD_BYTES_MAX = 256 * MIB;
/** One block of a staged upload, and one range of its assembly. */
export const STAGED_BLOCK_BYTES = 64 * MIB;
/** Blocks of one blob. Fixed by the storage. */
export const BLOCKS_PER_BLOB_MAX = 50_000;
/** A grant is void after this long; an agent asks for a new one. */
export const GRANT_LIFETIME_MS = 60 * 60_000;
/** A body without its sentinel is debris, not another writer at work, once it is this old. */
export const DEBRIS_AGE_MS = 60 * 60_000;

// --- Storage ------------------------------------------------------------------------------------------------------

/** Table storage takes 100 operations in one transaction. */
export const TABLE_BATCH_ROWS_MAX = 100;
export const TABLE_PAGE_ROWS_MAX = 1000;
export const LIST_PAGE_BLOBS_MAX = 5000;
/** Attempts of one storage request that may safely be repeated. */
export const STORAGE_ATTEMPTS_MAX = 5;
/** Full jitter between attempts: uniform up to base × 2^attempt, no more than the maximum (also of Retry-After). */
export const STORAGE_RETRY_DELAY_BASE_MS = 200;
export const STORAGE_RETRY_DELAY_MS_MAX = 10_000;
/** A request without an answer for this long is given up and made again; copying a block takes seconds. */
export const STORAGE_REQUEST_TIMEOUT_MS = 120_000;
/** A body that brings no bytes for this long is given up. */
export const STORAGE_BODY_STALL_MS = 60_000;
/** A user-delegation key is asked for this long (seven days is the service's maximum) and serves all signatures. */
export const DELEGATION_KEY_LIFETIME_MS = 24 * 60 * 60_000;
/** How far the clocks of this machine and of the storage service may differ. */
export const CLOCK_SKEW_MS = 5 * 60_000;
/** Blob metadata, names and values together, as the service documents. */
export const BLOB_METADATA_BYTES_MAX = 8 * KIB;
export const BLOB_NAME_CHARACTERS_MAX = 1024;
/** Messages one receive may take, and rows a lost batch is read back with at a time. */
export const QUEUE_RECEIVE_MAX = 32;
export const ROW_READ_BACK_WORKERS = 16;

// --- Flush --------------------------------------------------------------------------------------------------------

/** Conditional-write retries per root, full jitter between them; then a clear error, and the rows stay pending. */
export const CONDITIONAL_WRITE_RETRIES_MAX = 8;
/** How often a lookup lists again when shards change under it, before it answers "busy, retry". */
export const LOOKUP_RELIST_MAX = 4;
/** Full jitter between those retries: uniform up to base × 2^attempt, no more than the maximum. */
export const CONDITIONAL_WRITE_DELAY_BASE_MS = 100;
export const CONDITIONAL_WRITE_DELAY_MS_MAX = 5_000;
/** The same between two listings of a lookup. */
export const LOOKUP_RELIST_DELAY_BASE_MS = 50;
/** From this many roots without a claim on, a lookup lists all of `chunk-index/` once instead of each root. */
export const WHOLE_LISTING_ROOTS_MIN = 8;
/** Shards of one root loaded at a time by one lookup request. */
export const SHARD_LOADS_PER_ROOT_MAX = 32;
/**
 * A claim on a root, and the SAS its writes go through, expires after this. It is renewed while a flush goes on, so it
 * need not outlast a flush, only a single request; and a root whose flush died waits no longer than this.
 */
export const ROOT_CLAIM_DURATION_MS = 30_000;
/** A claim is taken over this long after its deadline: clocks differ, and a request accepted in time takes a moment. */
export const ROOT_CLAIM_MARGIN_MS = 10_000;
/** Waiting for a claim: base × 2^attempt up to the maximum; all attempts together outlast a claim and its margin. */
export const ROOT_CLAIM_WAIT_BASE_MS = 2_000;
export const ROOT_CLAIM_WAIT_MS_MAX = 16_000;
/** Text of a flush manifest held before it goes to storage, and read back at a time: about 35,000 rows. */
export const MANIFEST_BLOCK_BYTES = 4 * MIB;
/** Batches of settled rows removed at a time from one root. */
export const PENDING_REMOVE_WORKERS = 4;
/** How often a completing run flushes again because settle found a root with more than one shard on a row's path. */
export const FLUSH_ROUNDS_MAX = 4;

// --- Caches of a function instance ---------------------------------------------------------------------------------

/** Decoded shards kept by one instance, in entries (about 250 bytes each). */
export const CACHED_SHARD_ENTRIES_MAX = 200_000;
/** Coverage claims kept by one instance (about 200 bytes each); above it all are dropped, which costs listings only. */
export const COVERAGE_CLAIMS_MAX = 131_072;
export const CACHED_SNAPSHOTS_MAX = 500;
/** Repositories an instance keeps open, each with its cached shards. */
export const REPOSITORIES_OPEN_MAX = 32;

// --- Orchestration ------------------------------------------------------------------------------------------------

/** An activity's input or output: references, prefixes and counters, never entries. */
export const ACTIVITY_PAYLOAD_BYTES_MAX = 16 * KIB;
/** Filetree nodes one verification activity walks before it hands its stack to the next. */
export const VERIFY_NODES_PER_ACTIVITY = 2000;
/** Nodes read at a time by one verification. */
export const VERIFY_WORKERS = 8;
/** What one slice of a verification leaves to the next: VERIFY_CHILDREN_ON_STACK nodes for each level of the tree. */
export const VERIFY_STACK_BYTES_MAX = 64 * MIB;
/** Subdirectories of one node a verification keeps on its stack; for the rest it comes back to the node. */
export const VERIFY_CHILDREN_ON_STACK = 1000;
/** Subtrees a verification remembers as seen, so that a folder copied many times is walked once. */
export const VERIFY_SEEN_MAX = 10_000;
/** Flush pending rows early when a repository holds more than this many, or when the oldest is older than a day. */
export const PENDING_ROWS_EARLY_FLUSH = 100_000;
export const PENDING_AGE_FLUSH_MS = 24 * 60 * 60_000;
/** Slices of a verification, or blocks of an assembly, in one orchestration instance before the next one takes over. */
export const STEPS_PER_INSTANCE_MAX = 16;
/** Claims of one queued job before it fails for good: a job that kills its host must not do so for ever. */
export const JOB_ATTEMPTS_MAX = 5;
/** How soon an agent is told to ask again for an operation. */
export const OPERATION_POLL_SECONDS = 1;
/** A running job whose row did not change for this long is woken: its orchestration may be lost. */
export const JOB_SILENT_MS = 2 * 60_000;
/** Histories of ended orchestrations are kept this long: to look into what happened, not longer than it may matter. */
export const ORCHESTRATION_HISTORY_MS = 7 * 24 * 60 * 60_000;
/** Re-reads of a job or run row that others change at the same moment. */
export const ROW_CHANGE_ATTEMPTS_MAX = 16;
/** Open runs, or open jobs, of one repository that are looked at: one table page. */
export const OPEN_ROWS_READ_MAX = 1000;
/** How often a working run says so in its row. */
export const RUN_TOUCH_INTERVAL_MS = 60 * 60_000;
/** A run that did nothing for this long has expired. */
export const RUN_EXPIRES_MS = 7 * 24 * 60 * 60_000;

// --- Agent --------------------------------------------------------------------------------------------------------

/** Files hashed at a time: enough to hide the latency of a disk, few enough not to make one seek. */
export const HASH_WORKERS = 4;
/** Hashed files that may wait, in path order, behind a slower one. */
export const HASH_WINDOW_FILES_MAX = 128;
/** One read of a file that is hashed, spooled or compared. */
export const FILE_READ_BYTES = 256 * KIB;
/** A lookup is sent before it is full once the files behind it hold this much, so that uploads start early. */
export const LOOKUP_BATCH_BYTES = 256 * MIB;
/** Files waiting for the packer or for the encoders, so that scanning runs ahead only so far. */
export const CARRIER_QUEUE_FILES_MAX = 256;
/** Large files encoded, proven and uploaded at a time; each may hold its whole body in the spool. */
export const LARGE_FILE_WORKERS = 2;
/** Sealed tars that wait for their upload while the next one is packed: with the two in work, three in the spool. */
export const SPOOLED_TARS_MAX = 1;
/** A tar is sealed early at this many members: bounds its framing, and what a crash can make an agent upload twice. */
export const TAR_MEMBERS_MAX = 16_384;
/** How often a file that changes while it is read is hashed again before it is reported as never standing still. */
export const CHANGED_FILE_ATTEMPTS_MAX = 3;
/** A hash is reused only if the file's last change lies this long before the hash: file clocks are coarse. */
export const RACY_CHANGE_NS = 2_000_000_000n;
/** A second Ctrl-C ends the agent at once, but not this soon: npm passes on a first one that the terminal told already. */
export const SIGNAL_ECHO_MS_MAX = 1000;
/** Attempts of one HTTP request, with exponential backoff and full jitter between them: a minute, two at most. */
export const HTTP_ATTEMPTS_MAX = 12;
export const HTTP_BACKOFF_FIRST_MS = 250;
export const HTTP_BACKOFF_MS_MAX = 20_000;
/** Nothing came back for this long: the request is given up and tried again. Azure itself ends a call after 230 s. */
export const HTTP_SILENCE_MS_MAX = 240_000;
/** Uploads of one body: created, found absent after a conflict, created again. */
export const BODY_UPLOAD_ATTEMPTS_MAX = 4;
/** Blocks of one staged body in flight. */
export const STAGED_BLOCK_WORKERS = 2;
/** Entries of a directory read or serialized at a time. */
export const DIRECTORY_ENTRIES_PER_PAGE = 500;
/** A node up to this size is encoded in memory; a larger one goes through the spool. */
export const FILETREE_MEMORY_BYTES_MAX = 1 * MIB;
export const FILETREE_UPLOAD_WORKERS = 8;
/** Filetree nodes read at a time by a restore: small blobs, so latency is what there is to hide. */
export const FILETREE_READ_WORKERS = 8;
/** Chunks downloaded at a time by a restore. */
export const RESTORE_CHUNK_WORKERS = 3;
/** Downloads of one body: a damaged transfer is tried once more before the stored body is called corrupt. */
export const BODY_DOWNLOAD_ATTEMPTS_MAX = 3;
/** Statements per transaction in the agent's own databases. */
export const AGENT_DATABASE_BATCH = 1000;
/** Page cache of each of the agent's databases. */
export const AGENT_DATABASE_CACHE_KIB = 4096;
/** An agent stops waiting for an operation after this long; the operation goes on, and re-running waits again. */
export const OPERATION_WAIT_MS_MAX = 12 * 60 * 60_000;
export const OPERATION_POLL_MS_MAX = 2000;

// --- Local host ---------------------------------------------------------------------------------------------------

/** The host's default function timeout outside the consumption plan. */
export const FUNCTION_TIMEOUT_DEFAULT_MS = 30 * 60_000;
/** Storage queues give out this many messages at a time. */
export const QUEUE_BATCH_MESSAGES_MAX = 32;
/** The first poll after an idle queue; it doubles up to host.json's maxPollingInterval. */
export const QUEUE_POLL_MS_MIN = 100;
/** How long a received queue message stays hidden; renewed at half of it. As on Azure. */
export const QUEUE_VISIBILITY_MS = 10 * 60_000;
/** The host's default limit of a request body, as on Azure. */
export const REQUEST_BODY_DEFAULT_BYTES_MAX = 100 * MIB;
export const HOST_HEADER_BYTES_MAX = 32 * KIB;
export const HOST_HEADERS_TIMEOUT_MS = 20_000;
export const HOST_REQUEST_TIMEOUT_MS = 5 * 60_000;
export const HOST_KEEP_ALIVE_MS = 5000;
/** Instances in one page of the durable client's listing. */
export const INSTANCES_PER_PAGE_MAX = 100;
/** The journal is rewritten when it is both this large and this many times what it was after the last rewrite. */
export const JOURNAL_COMPACT_BYTES = 8 * MIB;
export const JOURNAL_COMPACT_FACTOR = 4;
/** setTimeout's largest wait; longer ones are armed again. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;
/** A host that is asked to stop lets running functions end for this long … */
export const STOP_GRACE_MS = 3000;
/** … and is gone after this. */
export const STOP_LIMIT_MS = 4500;
/** Loading an app takes well under a second; a machine under load takes longer. */
export const HOST_START_LIMIT_MS = 60_000;
