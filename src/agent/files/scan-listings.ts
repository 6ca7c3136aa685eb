/** The entries of directories that are being scanned: sorted by the database, so a directory may have any number. */

import type { ScratchDatabase } from '../state/database.ts';

export const SCAN_LISTINGS_SCHEMA = `
  CREATE TABLE scan_entry (directory INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (directory, kind, name)) WITHOUT ROWID;
`;

/** `file`: whatever is not a directory itself. */
export type ListedKind = 'file' | 'directory';
const KINDS: readonly ListedKind[] = ['file', 'directory'];

export class ScanListings {
  readonly #scratch: ScratchDatabase;
  readonly #add: ReturnType<ScratchDatabase['prepare']>;
  readonly #names: ReturnType<ScratchDatabase['prepare']>;
  readonly #has: ReturnType<ScratchDatabase['prepare']>;
  readonly #drop: ReturnType<ScratchDatabase['prepare']>;

  constructor(scratch: ScratchDatabase) {
    this.#scratch = scratch;
    this.#add = scratch.prepare(
      'INSERT INTO scan_entry (directory, kind, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
    this.#names = scratch.prepare(
      'SELECT name FROM scan_entry WHERE directory = ? AND kind = ? AND name > ? ORDER BY name LIMIT ?',
    );
    this.#has = scratch.prepare('SELECT 1 FROM scan_entry WHERE directory = ? AND kind = ? AND name = ?');
    this.#drop = scratch.prepare('DELETE FROM scan_entry WHERE directory = ?');
  }

  add(directoryId: number, kind: ListedKind, name: string): void {
    this.#scratch.beforeWrite();
    this.#add.run(directoryId, KINDS.indexOf(kind), name);
  }

  /** After the given one, by UTF-16 code units. */
  names(directoryId: number, kind: ListedKind, after: string, limit: number): string[] {
    return this.#names.all(directoryId, KINDS.indexOf(kind), after, limit).map((row) => row.name as string);
  }

  has(directoryId: number, kind: ListedKind, name: string): boolean {
    return this.#has.get(directoryId, KINDS.indexOf(kind), name) !== undefined;
  }

  drop(directoryId: number): void {
    this.#scratch.beforeWrite();
    this.#drop.run(directoryId);
  }
}
