/**
 * Content hashes of files that were read before, so that an unchanged file is not read again. Disposable: losing it costs
 * time, nothing else. A hash is salted with the passphrase, so the cache is kept apart by repository and passphrase.
 */

import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ContentHash, FileTreeHash } from '../../hashing/hashes.ts';
import { AGENT_DATABASE_BATCH, AGENT_DATABASE_CACHE_KIB, RACY_CHANGE_NS } from '../../limits.ts';
import { loadSqlite } from '../state/database.ts';
import type { FileSignals } from './file-signals.ts';
import { bytesOf, hexOf } from './hash-bytes.ts';
import { makeFolder } from './make-folder.ts';

export interface CachedHash {
  readonly contentHash: ContentHash;
  readonly signals: FileSignals;
  /** When the reading began, by the local clock. */
  readonly hashedAtNs: bigint;
  /** Of large files only: for a small one it costs as much as the hash. */
  readonly fingerprint: string | undefined;
}

export interface HashCacheScope {
  readonly repository: string;
  /** Tells passphrases apart without being one. */
  readonly passphraseFingerprint: string;
}

/** Raised when the tables change; an older or newer file is thrown away. */
const SCHEMA_VERSION = 1;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS scope (
    id INTEGER PRIMARY KEY, repository TEXT NOT NULL, passphrase TEXT NOT NULL, UNIQUE (repository, passphrase));
  CREATE TABLE IF NOT EXISTS hash (
    scope INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
    inode INTEGER NOT NULL, device INTEGER NOT NULL, hashed_at INTEGER NOT NULL, content BLOB NOT NULL,
    fingerprint BLOB, PRIMARY KEY (scope, path)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshot (
    scope INTEGER NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (scope, source)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshot_node (
    scope INTEGER NOT NULL, source TEXT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (scope, source, hash)) WITHOUT ROWID;
`;

/** True when the file is surely the one that was hashed. A change right before the hash could hide behind the clock. */
export function isUnchanged(cached: CachedHash, now: FileSignals): boolean {
  const then = cached.signals;
  return (
    then.sizeBytes === now.sizeBytes &&
    then.mtimeNs === now.mtimeNs &&
    then.ctimeNs === now.ctimeNs &&
    then.inode === now.inode &&
    then.device === now.device &&
    cached.hashedAtNs - now.ctimeNs > RACY_CHANGE_NS
  );
}

export class HashCache {
  readonly #db: DatabaseSync;
  readonly #scope: number;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  #pending: { path: string; entry: CachedHash }[] = [];

  private constructor(db: DatabaseSync, scope: number) {
    this.#db = db;
    this.#scope = scope;
    this.#get = db.prepare(
      `SELECT size, mtime, ctime, inode, device, hashed_at, content, fingerprint FROM hash WHERE scope = ? AND path = ?`,
    );
    this.#get.setReadBigInts(true);
    this.#put = db.prepare('INSERT OR REPLACE INTO hash VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  }

  /** A file that is damaged, or of another version, is replaced by an empty one. */
  static async open(path: string, scope: HashCacheScope): Promise<HashCache> {
    await makeFolder(dirname(path), 0o700);
    try {
      return await HashCache.#open(path, scope);
    } catch (error) {
      if (!isDamaged(error)) {
        throw error;
      }
      for (const suffix of ['', '-wal', '-shm']) {
        await rm(path + suffix, { force: true });
      }
      return await HashCache.#open(path, scope);
    }
  }

  static async #open(path: string, scope: HashCacheScope): Promise<HashCache> {
    const { DatabaseSync } = await loadSqlite();
    const db = new DatabaseSync(path, { timeout: 10_000 });
    try {
      const version = db.prepare('PRAGMA user_version').get()?.user_version;
      if (version !== 0 && version !== SCHEMA_VERSION) {
        throw new OtherVersionError();
      }
      // Several runs may share this file, and a power cut must not damage it: a wrong hash would be believed.
      db.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -${AGENT_DATABASE_CACHE_KIB};`,
      );
      db.exec(`BEGIN IMMEDIATE; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
      db.prepare('INSERT INTO scope (repository, passphrase) VALUES (?, ?) ON CONFLICT DO NOTHING').run(
        scope.repository,
        scope.passphraseFingerprint,
      );
      const row = db
        .prepare('SELECT id FROM scope WHERE repository = ? AND passphrase = ?')
        .get(scope.repository, scope.passphraseFingerprint);
      return new HashCache(db, Number(row?.id));
    } catch (error) {
      db.close();
      throw error;
    }
  }

  get(path: string): CachedHash | undefined {
    const row = this.#get.get(this.#scope, path);
    if (row === undefined) {
      return undefined;
    }
    return {
      contentHash: hexOf(row.content) as ContentHash,
      hashedAtNs: row.hashed_at as bigint,
      fingerprint: row.fingerprint === null ? undefined : hexOf(row.fingerprint),
      signals: {
        sizeBytes: Number(row.size),
        mtimeNs: row.mtime as bigint,
        ctimeNs: row.ctime as bigint,
        inode: row.inode as bigint,
        device: row.device as bigint,
      },
    };
  }

  /** Kept in memory until a batch is full, so that the file is locked for moments only. */
  put(path: string, entry: CachedHash): void {
    this.#pending.push({ path, entry });
    if (this.#pending.length >= AGENT_DATABASE_BATCH) {
      this.flush();
    }
  }

  flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    if (pending.length === 0) {
      return;
    }
    this.#transaction(() => {
      for (const { path, entry } of pending) {
        const { signals } = entry;
        this.#put.run(
          this.#scope,
          path,
          signals.sizeBytes,
          signals.mtimeNs,
          signals.ctimeNs,
          BigInt.asIntN(64, signals.inode),
          BigInt.asIntN(64, signals.device),
          entry.hashedAtNs,
          bytesOf(entry.contentHash),
          entry.fingerprint === undefined ? null : bytesOf(entry.fingerprint),
        );
      }
    });
  }

  /** The nodes of a source's snapshot, if exactly this snapshot was remembered. */
  snapshotNodes(source: string, name: string): ((hash: FileTreeHash) => boolean) | undefined {
    const known = this.#db.prepare('SELECT name FROM snapshot WHERE scope = ? AND source = ?').get(this.#scope, source);
    if (known?.name !== name) {
      return undefined;
    }
    const find = this.#db.prepare('SELECT 1 FROM snapshot_node WHERE scope = ? AND source = ? AND hash = ?');
    return (hash) => find.get(this.#scope, source, bytesOf(hash)) !== undefined;
  }

  /** Replaces what was remembered of the source. */
  rememberSnapshot(source: string, name: string, nodes: Iterable<FileTreeHash>): void {
    this.#transaction(() => {
      this.#db.prepare('DELETE FROM snapshot_node WHERE scope = ? AND source = ?').run(this.#scope, source);
      const add = this.#db.prepare('INSERT OR IGNORE INTO snapshot_node VALUES (?, ?, ?)');
      for (const hash of nodes) {
        add.run(this.#scope, source, bytesOf(hash));
      }
      this.#db.prepare('INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)').run(this.#scope, source, name);
    });
  }

  close(): void {
    try {
      this.flush();
    } finally {
      this.#db.close();
    }
  }

  /** Another run that holds the file for long, or a full disk, costs this run its new hashes and nothing else. */
  #transaction(write: () => void): void {
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      write();
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) {
        this.#db.exec('ROLLBACK');
      }
      if ((error as { code?: string }).code !== 'ERR_SQLITE_ERROR') {
        throw error;
      }
    }
  }
}

/** Occurs when the file was made by another version of the agent. */
class OtherVersionError extends Error {}

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
const SQLITE_ERROR = 1;

function isDamaged(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  return (
    error instanceof OtherVersionError ||
    errcode === SQLITE_CORRUPT ||
    errcode === SQLITE_NOTADB ||
    errcode === SQLITE_ERROR
  );
}
