/**
 * A lock that exactly one process of this machine holds, and that ends with the process however it ends (kill -9
 * included): an exclusive SQLite transaction, whose lock the kernel keeps.
 *
 * Nothing else may open the lock file: closing any descriptor of it would drop the lock of the whole process.
 */

import { DatabaseSync } from 'node:sqlite';

/** SQLite's code for a lock that another process holds. */
const SQLITE_BUSY = 5;

export class ProcessLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Undefined when another process holds it. Blocks this thread for `waitMs` at most. */
  static tryAcquire(path: string, waitMs = 0): ProcessLock | undefined {
    const database = new DatabaseSync(path, { timeout: waitMs });
    try {
      database.exec('BEGIN EXCLUSIVE');
      return new ProcessLock(database);
    } catch (error) {
      database.close();
      if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
      throw error;
    }
  }

  release(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}
