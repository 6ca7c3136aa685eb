/** Writes the history of a finished execution to a file of its own, for replay tests. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from './history.ts';
import type { InstanceRow } from './hub-state.ts';

export function recordExecution(directory: string, row: InstanceRow, history: readonly HistoryEvent[]): void {
  const { name, instanceId, executionId, version } = row;
  const input: unknown = row.input === null ? null : JSON.parse(row.input);
  mkdirSync(directory, { recursive: true });
  const file = `${name}-${instanceId}-${executionId}.json`.replace(/[^A-Za-z0-9._-]/g, '_');
  const record = { name, instanceId, executionId, version, input, history };
  writeFileSync(join(directory, file), `${JSON.stringify(record, undefined, 1)}\n`);
}
