/**
 * What an archive run has seen: directories and files in path order, and the state of every content. It lives on disk, so that nothing in memory grows with the number of files.
 *
 * Directory ids are given in the order of a depth-first walk, so the directories below `d` are exactly the ids from
 * `d + 1` to its `lastId`, and children always have greater ids than their parents.
 */

import type { ContentHash, FileTreeHash } from '../../hashing/hashes.ts';
import { DIRECTORY_ENTRIES_PER_PAGE } from '../../limits.ts';
import type { FileTreeEntry } from '../../repository/filetree.ts';
import { bytesOf, hexOf } from '../files/hash-bytes.ts';
import { SCAN_LISTINGS_SCHEMA, ScanListings } from '../files/scan-listings.ts';
import { TAR_MEMBERS_SCHEMA, TarMembers } from '../restore/tar-members.ts';
import type { ScratchDatabase } from '../state/database.ts';
import { joinPath } from '../state/paths.ts';

/**
 * `queued`: its carrier, the file it is read from, is on its way. `lost`: the carrier changed or vanished, another file
 * may carry it. `waiting`: another writer's unfinished upload is in the way. `stored`: by this run. `known`: before it.
 */
export type ContentState = 'queued' | 'lost' | 'waiting' | 'stored' | 'known';
/** `hashed`: waits for its content. `again`: to be hashed again. `failed`: left out of the tree. */
export type FileState = 'hashed' | 'again' | 'failed';

/** The numbers in the database: from 3 on, the content is durable and the tree may name it. */
const CONTENT_STATES: readonly ContentState[] = ['queued', 'lost', 'waiting', 'stored', 'known'];
const FILE_STATES: readonly FileState[] = ['hashed', 'again', 'failed'];

const TREE_SCHEMA = `
  CREATE TABLE directory (
    id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL, last_id INTEGER NOT NULL,
    tree_hash BLOB, node_bytes INTEGER NOT NULL DEFAULT 0, present INTEGER NOT NULL DEFAULT 0);
  CREATE INDEX directory_child ON directory (parent, name);
  CREATE TABLE file (
    id INTEGER PRIMARY KEY, directory INTEGER NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL,
    created INTEGER NOT NULL, modified INTEGER NOT NULL, content BLOB, state INTEGER NOT NULL,
    attempts INTEGER NOT NULL, pointer INTEGER NOT NULL);
  CREATE UNIQUE INDEX file_name ON file (directory, name);
  CREATE INDEX file_unsettled ON file (state, id) WHERE state <> 0;
  CREATE TABLE content (hash BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE uploaded_node (hash BLOB PRIMARY KEY) WITHOUT ROWID;
`;

export const RUN_SCHEMA: string = TREE_SCHEMA + TAR_MEMBERS_SCHEMA + SCAN_LISTINGS_SCHEMA;

export interface FileRow {
  readonly directoryId: number;
  readonly name: string;
  readonly sizeBytes: number;
  readonly createdTicks: bigint;
  readonly modifiedTicks: bigint;
  readonly content: ContentHash | undefined;
  readonly state: FileState;
  readonly attempts: number;
  /** Stands for a binary that is not here: never a carrier. */
  readonly pointer: boolean;
}

export interface FileRef {
  readonly id: number;
  readonly directoryId: number;
  readonly name: string;
  /** Below the archived folder, with slashes. */
  readonly path: string;
  readonly attempts: number;
}

export interface DirectoryRow {
  readonly id: number;
  readonly parent: number | null;
  readonly lastId: number;
  readonly treeHash: FileTreeHash | undefined;
  readonly nodeBytes: number;
  readonly present: boolean;
}

type Statements = ReturnType<typeof prepareAll>;

function prepareAll(db: ScratchDatabase) {
  return {
    addDirectory: db.prepare('INSERT INTO directory (id, parent, name, last_id) VALUES (?, ?, ?, ?)'),
    endDirectory: db.prepare('UPDATE directory SET last_id = ? WHERE id = ?'),
    directory: db.prepare('SELECT id, parent, last_id, tree_hash, node_bytes, present FROM directory WHERE id = ?'),
    directoryName: db.prepare('SELECT parent, name FROM directory WHERE id = ?'),
    childDirectory: db.prepare('SELECT id FROM directory WHERE parent = ? AND name = ?'),
    setNode: db.prepare('UPDATE directory SET tree_hash = ?, node_bytes = ? WHERE id = ?'),
    setPresent: db.prepare('UPDATE directory SET present = 1 WHERE id BETWEEN ? AND ?'),
    nodeHashes: db.prepare(
      'SELECT id, tree_hash FROM directory WHERE id > ? AND tree_hash IS NOT NULL ORDER BY id LIMIT ?',
    ),
    addUploadedNode: db.prepare('INSERT INTO uploaded_node VALUES (?) ON CONFLICT DO NOTHING'),
    uploadedNode: db.prepare('SELECT 1 FROM uploaded_node WHERE hash = ?'),
    addFile: db.prepare(
      `INSERT INTO file (directory, name, size, created, modified, content, state, attempts, pointer)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ),
    rehashFile: db.prepare(
      'UPDATE file SET size = ?, created = ?, modified = ?, content = ?, state = ?, attempts = ? WHERE id = ?',
    ),
    fileName: db.prepare('SELECT directory, name FROM file WHERE id = ?'),
    setFileState: db.prepare('UPDATE file SET state = ? WHERE id = ?'),
    filesAgain: db.prepare(
      'SELECT id, directory, name, attempts FROM file WHERE state = 1 AND id > ? ORDER BY id LIMIT ?',
    ),
    contentState: db.prepare('SELECT state FROM content WHERE hash = ?'),
    setContent: db.prepare(
      'INSERT INTO content (hash, state) VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state',
    ),
    rehashLost: db.prepare(
      `UPDATE file SET state = 1
       WHERE state = 0 AND pointer = 0 AND content IN (SELECT hash FROM content WHERE state = 1)`,
    ),
    unsettled: db.prepare(
      `SELECT f.id, f.directory, f.name, f.attempts, f.pointer, c.state FROM file f JOIN content c ON c.hash = f.content
       WHERE f.state = 0 AND c.state < 3 AND f.id > ? ORDER BY f.id LIMIT ?`,
    ),
    treePage: db.prepareBig(
      `SELECT * FROM (SELECT f.name AS name, 0 AS kind, f.content AS hash, f.created AS created, f.modified AS modified
         FROM file f JOIN content c ON c.hash = f.content
         WHERE f.directory = ?1 AND f.name > ?2 AND f.state = 0 AND c.state >= 3 ORDER BY f.name LIMIT ?4)
       UNION ALL
       SELECT * FROM (SELECT d.name, 1, d.tree_hash, 0, 0 FROM directory d
         WHERE d.parent = ?1 AND d.name >= ?2 AND NOT (d.name = ?2 AND ?3 = 1) AND d.tree_hash IS NOT NULL
         ORDER BY d.name LIMIT ?4)
       ORDER BY name, kind LIMIT ?4`,
    ),
    totals: db.prepare(
      `SELECT count(*) AS files, coalesce(sum(f.size), 0) AS bytes FROM file f JOIN content c ON c.hash = f.content
       WHERE f.state = 0 AND c.state >= 3`,
    ),
  };
}

export class RunDatabase {
  readonly scratch: ScratchDatabase;
  readonly tarMembers: TarMembers;
  readonly listings: ScanListings;
  readonly #sql: Statements;
  #lastDirectoryId = 0;

  constructor(scratch: ScratchDatabase) {
    this.scratch = scratch;
    this.tarMembers = new TarMembers(scratch);
    this.listings = new ScanListings(scratch);
    this.#sql = prepareAll(scratch);
  }

  // --- Directories ---

  addDirectory(parent: number | null, name: string): number {
    const id = ++this.#lastDirectoryId;
    this.scratch.beforeWrite();
    this.#sql.addDirectory.run(id, parent, name, id);
    return id;
  }

  /** Everything below has been entered. */
  endDirectory(id: number): void {
    this.scratch.beforeWrite();
    this.#sql.endDirectory.run(this.#lastDirectoryId, id);
  }

  get lastDirectoryId(): number {
    return this.#lastDirectoryId;
  }

  directory(id: number): DirectoryRow {
    const row = this.#sql.directory.get(id);
    if (row === undefined) {
      throw new Error(`no directory ${id} in this run`);
    }
    return {
      id,
      parent: row.parent as number | null,
      lastId: row.last_id as number,
      treeHash: row.tree_hash === null ? undefined : (hexOf(row.tree_hash) as FileTreeHash),
      nodeBytes: row.node_bytes as number,
      present: row.present === 1,
    };
  }

  childDirectory(parent: number, name: string): number | undefined {
    return this.#sql.childDirectory.get(parent, name)?.id as number | undefined;
  }

  setNode(id: number, treeHash: FileTreeHash, nodeBytes: number): void {
    this.scratch.beforeWrite();
    this.#sql.setNode.run(bytesOf(treeHash), nodeBytes, id);
  }

  /** The node, and every node below it, is in storage already. */
  markSubtreePresent(id: number): void {
    this.scratch.beforeWrite();
    this.#sql.setPresent.run(id, this.directory(id).lastId);
  }

  /** Of all directories that have one. */
  *nodeHashes(): Generator<FileTreeHash, void, void> {
    for (let after = 0; ; ) {
      const rows = this.#sql.nodeHashes.all(after, DIRECTORY_ENTRIES_PER_PAGE);
      for (const row of rows) {
        yield hexOf(row.tree_hash) as FileTreeHash;
      }
      if (rows.length < DIRECTORY_ENTRIES_PER_PAGE) {
        return;
      }
      after = rows.at(-1)?.id as number;
    }
  }

  /** Twin directories share one node: true when this run has created it, or found it present. */
  isNodeUploaded(hash: FileTreeHash): boolean {
    return this.#sql.uploadedNode.get(bytesOf(hash)) !== undefined;
  }

  addUploadedNode(hash: FileTreeHash): void {
    this.scratch.beforeWrite();
    this.#sql.addUploadedNode.run(bytesOf(hash));
  }

  /** Empty for the archived folder itself. */
  directoryPath(id: number): string {
    const names: string[] = [];
    for (let current: number | null = id; current !== null; ) {
      const row = this.#sql.directoryName.get(current);
      if (row === undefined) {
        throw new Error(`no directory ${current} in this run`);
      }
      current = row.parent as number | null;
      if (current !== null) {
        names.push(row.name as string);
      }
    }
    return names.reverse().join('/');
  }

  // --- Files ---

  /** Undefined when the directory has a file of this name already. */
  addFile(file: FileRow): number | undefined {
    this.scratch.beforeWrite();
    const { changes, lastInsertRowid } = this.#sql.addFile.run(
      file.directoryId,
      file.name,
      file.sizeBytes,
      file.createdTicks,
      file.modifiedTicks,
      file.content === undefined ? null : bytesOf(file.content),
      FILE_STATES.indexOf(file.state),
      file.attempts,
      file.pointer ? 1 : 0,
    );
    return changes === 0 ? undefined : Number(lastInsertRowid);
  }

  rehashFile(id: number, file: FileRow): void {
    this.scratch.beforeWrite();
    this.#sql.rehashFile.run(
      file.sizeBytes,
      file.createdTicks,
      file.modifiedTicks,
      file.content === undefined ? null : bytesOf(file.content),
      FILE_STATES.indexOf(file.state),
      file.attempts,
      id,
    );
  }

  setFileState(id: number, state: FileState): void {
    this.scratch.beforeWrite();
    this.#sql.setFileState.run(FILE_STATES.indexOf(state), id);
  }

  filePath(id: number): string {
    const row = this.#sql.fileName.get(id);
    if (row === undefined) {
      throw new Error(`no file ${id} in this run`);
    }
    return joinPath(this.directoryPath(row.directory as number), row.name as string);
  }

  /** Files to be hashed again, in path order; pages, so that a file may change its state meanwhile. */
  filesAgain(afterId: number, limit: number): FileRef[] {
    return this.#sql.filesAgain.all(afterId, limit).map((row) => this.#fileRef(row));
  }

  #fileRef(row: Record<string, unknown>): FileRef {
    const directoryId = row.directory as number;
    return {
      id: row.id as number,
      directoryId,
      name: row.name as string,
      path: joinPath(this.directoryPath(directoryId), row.name as string),
      attempts: row.attempts as number,
    };
  }

  // --- Contents ---

  contentState(hash: ContentHash): ContentState | undefined {
    const row = this.#sql.contentState.get(bytesOf(hash));
    return row === undefined ? undefined : CONTENT_STATES[row.state as number];
  }

  setContent(hash: ContentHash, state: ContentState): void {
    this.scratch.beforeWrite();
    this.#sql.setContent.run(bytesOf(hash), CONTENT_STATES.indexOf(state));
  }

  /** Files whose content lost its carrier are hashed again, so that one of them becomes the carrier. */
  rehashFilesOfLostContents(): void {
    this.scratch.beforeWrite();
    this.#sql.rehashLost.run();
  }

  /** Files that wait for a content which is not stored, in path order. */
  filesWithoutContent(afterId: number, limit: number): (FileRef & { pointer: boolean; content: ContentState })[] {
    return this.#sql.unsettled.all(afterId, limit).map((row) => ({
      ...this.#fileRef(row),
      pointer: row.pointer === 1,
      content: CONTENT_STATES[row.state as number] as ContentState,
    }));
  }

  // --- The tree, of what is stored ---

  /** Entries of a directory in the order of the format, after a given one: only files whose content is stored. */
  treePage(directoryId: number, after: FileTreeEntry | undefined, limit: number): FileTreeEntry[] {
    const rows = this.#sql.treePage.all(directoryId, after?.name ?? '', after?.kind === 'directory' ? 1 : 0, limit);
    return rows.map((row) =>
      row.kind === 0n
        ? {
            kind: 'file',
            name: row.name as string,
            contentHash: hexOf(row.hash) as ContentHash,
            createdTicks: row.created as bigint,
            modifiedTicks: row.modified as bigint,
          }
        : { kind: 'directory', name: row.name as string, fileTreeHash: hexOf(row.hash) as FileTreeHash },
    );
  }

  /** Files of the tree and the sum of their sizes. */
  totals(): { fileCount: number; bytes: number } {
    const row = this.#sql.totals.get();
    return { fileCount: Number(row?.files ?? 0), bytes: Number(row?.bytes ?? 0) };
  }
}
