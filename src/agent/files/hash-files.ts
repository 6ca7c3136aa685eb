/**
 * From a scanned file to its content hash. What counts as the file's state is taken before its first byte is read and
 * compared after its last one, so bytes of two states never make one hash. A cached hash is used only as hash-cache.ts
 * allows it.
 */

import { constants, type FileHandle, open } from 'node:fs/promises';
import type { Hasher } from '../../hashing/hasher.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import { CHANGED_FILE_ATTEMPTS_MAX, FILE_READ_BYTES, SMALL_FILE_BYTES_MAX_EXCLUSIVE } from '../../limits.ts';
import { parsePointerFile } from '../../repository/pointer-file.ts';
import { eachFileChunk } from './file-chunks.ts';
import { type FileSignals, sameSignals, signalsOf } from './file-signals.ts';
import { type HashCache, isUnchanged } from './hash-cache.ts';
import type { FileSystems } from './network-filesystem.ts';
import { PassingFingerprint, readFingerprint } from './sparse-fingerprint.ts';

export type HashOutcome =
  | {
      readonly kind: 'hashed';
      readonly contentHash: ContentHash;
      readonly signals: FileSignals;
      readonly attempts: number;
      /** It changed at least once while it was being read. */
      readonly changed: boolean;
    }
  | { readonly kind: 'failed'; readonly why: string; readonly changed: boolean };

export interface HashFilesOptions {
  readonly hasher: Hasher;
  readonly cache: HashCache;
  readonly fileSystems: FileSystems;
  /** `changed` (default): reuse what is surely unchanged. `fast`: also believe the fingerprint. `all`: read everything. */
  readonly mode: 'changed' | 'fast' | 'all';
  readonly signal: AbortSignal;
  onBytes?(bytes: number): void;
  /** Nanoseconds since the epoch, by the clock that also stamps the files. */
  nowNs?(): bigint;
  /** Tests: between the last byte and the second look. */
  afterRead?(path: string): Promise<void>;
}

const POINTER_BYTES_MAX = 4096;

export class FileHasher {
  readonly #options: HashFilesOptions;
  /** Buffers of files being read; one for each that is read at a time. */
  readonly #buffers: Uint8Array[] = [];

  constructor(options: HashFilesOptions) {
    this.#options = options;
  }

  /** `attempts` so far; `signals` as the scan saw them, or undefined to look again. */
  async hash(path: string, signals: FileSignals | undefined, attempts = 0): Promise<HashOutcome> {
    const cached = this.#options.mode === 'all' || attempts > 0 ? undefined : this.#options.cache.get(path);
    try {
      if (cached !== undefined && signals !== undefined && isUnchanged(cached, signals)) {
        if (await this.#options.fileSystems.isLocal(signals.device, path)) {
          this.#options.onBytes?.(signals.sizeBytes);
          return { kind: 'hashed', contentHash: cached.contentHash, signals, attempts: attempts + 1, changed: false };
        }
      }
      return await this.#read(path, cached, attempts);
    } catch (error) {
      this.#options.signal.throwIfAborted();
      return { kind: 'failed', why: readProblem(error), changed: false };
    }
  }

  /** The hash a pointer file names. Undefined when it is not one. */
  async pointer(path: string): Promise<ContentHash | undefined> {
    const handle = await open(path, 'r');
    try {
      const buffer = Buffer.alloc(POINTER_BYTES_MAX);
      const { bytesRead } = await handle.read(buffer, 0, POINTER_BYTES_MAX, 0);
      return bytesRead === POINTER_BYTES_MAX ? undefined : parsePointerFile(buffer.toString('utf8', 0, bytesRead));
    } finally {
      await handle.close();
    }
  }

  async #read(path: string, cached: ReturnType<HashCache['get']>, attemptsBefore: number): Promise<HashOutcome> {
    // Should a pipe have taken the file's place since the scan, opening it must not wait for a writer.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    let changed = false;
    try {
      let before = signalsOf(await handle.stat({ bigint: true }));
      if (this.#options.mode === 'fast' && (await fingerprintMatches(handle, cached, before))) {
        const contentHash = (cached as NonNullable<typeof cached>).contentHash;
        this.#options.onBytes?.(before.sizeBytes);
        this.#remember(path, { contentHash, signals: before, fingerprint: cached?.fingerprint });
        return { kind: 'hashed', contentHash, signals: before, attempts: attemptsBefore + 1, changed };
      }
      for (let attempts = attemptsBefore + 1; attempts <= CHANGED_FILE_ATTEMPTS_MAX; attempts++) {
        const { contentHash, fingerprint, hashedAtNs } = await this.#hashOnce(handle, before);
        await this.#options.afterRead?.(path);
        const after = signalsOf(await handle.stat({ bigint: true }));
        if (sameSignals(before, after)) {
          this.#remember(path, { contentHash, signals: before, fingerprint }, hashedAtNs);
          return { kind: 'hashed', contentHash, signals: before, attempts, changed };
        }
        changed = true;
        before = after;
      }
      return { kind: 'failed', why: 'it never stood still while it was read', changed: true };
    } finally {
      await handle.close();
    }
  }

  async #hashOnce(
    handle: FileHandle,
    signals: FileSignals,
  ): Promise<{ contentHash: ContentHash; fingerprint: string | undefined; hashedAtNs: bigint }> {
    const hashedAtNs = this.#now();
    const hash = this.#options.hasher.start();
    const large = signals.sizeBytes >= SMALL_FILE_BYTES_MAX_EXCLUSIVE;
    const fingerprint = large ? new PassingFingerprint(signals.sizeBytes) : undefined;
    const buffer = this.#buffers.pop() ?? Buffer.allocUnsafeSlow(FILE_READ_BYTES);
    try {
      await eachFileChunk(handle, signals.sizeBytes, buffer, (bytes, offsetBytes) => {
        this.#options.signal.throwIfAborted();
        hash.update(bytes);
        fingerprint?.update(bytes, offsetBytes);
        this.#options.onBytes?.(bytes.byteLength);
      });
    } finally {
      this.#buffers.push(buffer);
    }
    return { contentHash: hash.digest() as ContentHash, fingerprint: fingerprint?.digest(), hashedAtNs };
  }

  #remember(
    path: string,
    entry: { contentHash: ContentHash; signals: FileSignals; fingerprint: string | undefined },
    hashedAtNs = this.#now(),
  ): void {
    this.#options.cache.put(path, { ...entry, hashedAtNs });
  }

  #now(): bigint {
    return this.#options.nowNs?.() ?? BigInt(Date.now()) * 1_000_000n;
  }
}

async function fingerprintMatches(
  handle: FileHandle,
  cached: ReturnType<HashCache['get']>,
  now: FileSignals,
): Promise<boolean> {
  if (cached?.fingerprint === undefined || cached.signals.sizeBytes !== now.sizeBytes) {
    return false;
  }
  return (await readFingerprint(handle, now.sizeBytes)) === cached.fingerprint;
}

function readProblem(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'it vanished before it could be read';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not read it';
    default:
      return `it cannot be read (${code ?? (error instanceof Error ? error.message : String(error))})`;
  }
}
