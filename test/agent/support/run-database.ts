/** A run database in a folder that is removed after the test. */

import { afterEach } from 'vitest';
import { RUN_SCHEMA, RunDatabase } from '../../../src/agent/archive/run-database.ts';
import { ScratchDatabase } from '../../../src/agent/state/database.ts';

const open: ScratchDatabase[] = [];

afterEach(() => {
  for (const database of open.splice(0)) {
    database.close();
  }
});

async function scratchDatabase(schema: string): Promise<ScratchDatabase> {
  const database = await ScratchDatabase.open(':memory:', schema);
  open.push(database);
  return database;
}

export async function runDatabase(): Promise<RunDatabase> {
  return new RunDatabase(await scratchDatabase(RUN_SCHEMA));
}
