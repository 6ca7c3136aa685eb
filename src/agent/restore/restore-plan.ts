/**
 * What a restore has to do, on disk rather than in memory: the directories still to be read, and every wanted file with
 * its state. Files are grouped by chunk, so that a chunk is downloaded once however many files it serves.
 */

import type { ChunkHash, ContentHash, FileTreeHash } from '../../hashing/hashes.ts';
import { bytesOf, hexOf } from '../files/hash-bytes.ts';
import type { ScratchDatabase } from '../state/database.ts';

/**
 * `wanted`: not looked at. `needed`: to be downloaded. `identical`, `kept`: the local file stays. `pending`: its chunk
 * must be rehydrated first.
 */
export type RestoreState = 'wanted' | 'needed' | 'restored' | 'identical' | 'kept' | 'failed' | 'pending';
const STATES: readonly RestoreState[] = ['wanted', 'needed', 'restored', 'identical', 'kept', 'failed', 'pending'];

export const RESTORE_SCHEMA = `
  CREATE TABLE directory (id INTEGER PRIMARY KEY, path TEXT NOT NULL, hash BLOB NOT NULL);
  CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT NOT NULL, content BLOB NOT NULL, modified INTEGER NOT NULL,
    state INTEGER NOT NULL, chunk BLOB, size INTEGER);
  CREATE INDEX file_content ON file (content, state);
  CREATE INDEX file_chunk ON file (chunk, content, state);
`;

export interface PlannedFile {
  readonly id: number;
  readonly path: string;
  readonly content: ContentHash;
  readonly modifiedTicks: bigint;
  /** By the index; known once the file is needed. */
  readonly sizeBytes: number;
}

export interface PlannedDirectory {
  readonly id: number;
  readonly path: string;
  readonly hash: FileTreeHash;
}

type Statements = ReturnType<typeof prepareAll>;

function prepareAll(db: ScratchDatabase) {
  const columns = 'id, path, content, modified, coalesce(size, 0) AS size';
  return {
    addDirectory: db.prepare('INSERT INTO directory (path, hash) VALUES (?, ?)'),
    directories: db.prepare('SELECT id, path, hash FROM directory WHERE id > ? ORDER BY id LIMIT ?'),
    addFile: db.prepare('INSERT INTO file (path, content, modified, state) VALUES (?, ?, ?, 0)'),
    files: db.prepareBig(`SELECT ${columns} FROM file WHERE id > ? ORDER BY id LIMIT ?`),
    setState: db.prepare('UPDATE file SET state = ? WHERE id = ?'),
    neededContents: db.prepare(
      'SELECT DISTINCT content FROM file WHERE state = 1 AND content > ? ORDER BY content LIMIT ?',
    ),
    locate: db.prepare('UPDATE file SET chunk = ?, size = ? WHERE content = ? AND state = 1'),
    filesOfContent: db.prepareBig(
      `SELECT ${columns} FROM file WHERE content = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?`,
    ),
    chunks: db.prepare('SELECT DISTINCT chunk FROM file WHERE state = 1 AND chunk > ? ORDER BY chunk LIMIT ?'),
    filesOfChunk: db.prepareBig(
      `SELECT ${columns} FROM file WHERE chunk = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?`,
    ),
    firstOfChunk: db.prepareBig(`SELECT ${columns} FROM file WHERE chunk = ? AND state = 1 LIMIT 1`),
    totals: db.prepare('SELECT count(*) AS files, coalesce(sum(size), 0) AS bytes FROM file WHERE state = ?'),
  };
}

export class RestorePlan {
  readonly scratch: ScratchDatabase;
  readonly #sql: Statements;

  constructor(scratch: ScratchDatabase) {
    this.scratch = scratch;
    this.#sql = prepareAll(scratch);
  }

  addDirectory(path: string, hash: FileTreeHash): void {
    this.scratch.beforeWrite();
    this.#sql.addDirectory.run(path, bytesOf(hash));
  }

  /** In the order they were added: breadth first. */
  directories(afterId: number, limit: number): PlannedDirectory[] {
    return this.#sql.directories.all(afterId, limit).map((row) => ({
      id: row.id as number,
      path: row.path as string,
      hash: hexOf(row.hash) as FileTreeHash,
    }));
  }

  addFile(path: string, content: ContentHash, modifiedTicks: bigint): void {
    this.scratch.beforeWrite();
    this.#sql.addFile.run(path, bytesOf(content), modifiedTicks);
  }

  files(afterId: number, limit: number): PlannedFile[] {
    return this.#sql.files.all(BigInt(afterId), limit).map(fileOf);
  }

  setState(fileId: number, state: RestoreState): void {
    this.scratch.beforeWrite();
    this.#sql.setState.run(STATES.indexOf(state), fileId);
  }

  neededContents(after: ContentHash | undefined, limit: number): ContentHash[] {
    return this.#sql.neededContents
      .all(after === undefined ? new Uint8Array() : bytesOf(after), limit)
      .map((row) => hexOf(row.content) as ContentHash);
  }

  locate(content: ContentHash, chunk: ChunkHash, sizeBytes: number): void {
    this.scratch.beforeWrite();
    this.#sql.locate.run(bytesOf(chunk), sizeBytes, bytesOf(content));
  }

  /** Those still needed. */
  filesOfContent(content: ContentHash, afterId: number, limit: number): PlannedFile[] {
    return this.#sql.filesOfContent.all(bytesOf(content), BigInt(afterId), limit).map(fileOf);
  }

  /** Chunks that needed files lie in. */
  chunks(after: ChunkHash | undefined, limit: number): ChunkHash[] {
    return this.#sql.chunks
      .all(after === undefined ? new Uint8Array() : bytesOf(after), limit)
      .map((row) => hexOf(row.chunk) as ChunkHash);
  }

  filesOfChunk(chunk: ChunkHash, afterId: number, limit: number): PlannedFile[] {
    return this.#sql.filesOfChunk.all(bytesOf(chunk), BigInt(afterId), limit).map(fileOf);
  }

  /** Undefined: nothing in the chunk is needed any more. */
  firstOfChunk(chunk: ChunkHash): PlannedFile | undefined {
    const row = this.#sql.firstOfChunk.get(bytesOf(chunk));
    return row === undefined ? undefined : fileOf(row);
  }

  totals(state: RestoreState): { files: number; bytes: number } {
    const row = this.#sql.totals.get(STATES.indexOf(state));
    return { files: Number(row?.files ?? 0), bytes: Number(row?.bytes ?? 0) };
  }
}

function fileOf(row: Record<string, unknown>): PlannedFile {
  return {
    id: Number(row.id),
    path: row.path as string,
    content: hexOf(row.content) as ContentHash,
    modifiedTicks: row.modified as bigint,
    sizeBytes: Number(row.size),
  };
}
