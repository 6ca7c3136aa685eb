/** What functions leave behind for the tests: in memory for whoever asks, and in a file that survives the process. */

import { appendFileSync } from 'node:fs';

const lines: string[] = [];

export function note(line: string): void {
  lines.push(line);
  const file = process.env.SAMPLE_LOG;
  if (file !== undefined) appendFileSync(file, `${line}\n`);
}

export function notesWith(prefix: string): string[] {
  return lines.filter((line) => line.startsWith(prefix));
}
