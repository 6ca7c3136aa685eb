/**
 * The agent's own databases: disposable, bounded in memory, one writer. Only node:sqlite's announcement that it is
 * experimental is silenced; every other warning passes.
 */

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { AGENT_DATABASE_BATCH, AGENT_DATABASE_CACHE_KIB } from '../../limits.ts';

let sqlite: typeof import('node:sqlite') | undefined;

/** Loaded on first use, so that the silence covers exactly this import. */
export async function loadSqlite(): Promise<typeof import('node:sqlite')> {
  if (sqlite === undefined) {
    const emitWarning = process.emitWarning;
    process.emitWarning = (warning, ...rest: unknown[]) => {
      if (!String(warning).includes('SQLite is an experimental feature')) {
        Reflect.apply(emitWarning, process, [warning, ...rest]);
      }
    };
    try {
      sqlite = await import('node:sqlite');
    } finally {
      process.emitWarning = emitWarning;
    }
  }
  return sqlite;
}

/**
 * A database that lives for one run. No journal and no syncing: after a crash it is thrown away. The exclusive lock it
 * holds from its first write is also what tells a live run from a dead one (run-folder.ts).
 *
 * Text is UTF-16BE inside, so that SQLite's own comparison is the order of UTF-16 code units in which the format sorts.
 */
export class ScratchDatabase {
  readonly db: DatabaseSync;
  #writes = 0;
  #inTransaction = false;

  private constructor(db: DatabaseSync) {
    this.db = db;
  }

  static async open(path: string, schema: string): Promise<ScratchDatabase> {
    const { DatabaseSync } = await loadSqlite();
    const db = new DatabaseSync(path);
    db.exec(`
      PRAGMA encoding = 'UTF-16be';
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA cache_size = -${AGENT_DATABASE_CACHE_KIB};
      PRAGMA temp_store = FILE;
    `);
    db.exec(schema);
    return new ScratchDatabase(db);
  }

  prepare(sql: string): StatementSync {
    return this.db.prepare(sql);
  }

  /** Ticks of 100 ns do not fit a double: statements that return them read 64-bit integers. */
  prepareBig(sql: string): StatementSync {
    const statement = this.db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }

  /** Called before each write: gathers writes into transactions of a fixed size. */
  beforeWrite(): void {
    if (!this.#inTransaction) {
      this.db.exec('BEGIN');
      this.#inTransaction = true;
    }
    if (++this.#writes >= AGENT_DATABASE_BATCH) {
      this.db.exec('COMMIT; BEGIN');
      this.#writes = 0;
    }
  }

  close(): void {
    if (this.db.isOpen) {
      this.db.close();
    }
  }
}
