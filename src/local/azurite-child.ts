/**
 * The process in which Azurite runs: Azurite's own command line, started by path with the arguments of this process.
 *
 * - The first line of its standard input names the account and its key.
 * - It ends when its standard input ends, that is when its parent is gone, however that died. By its own SIGTERM: Azurite
 *   keeps up to 5 s of writes in memory and saves them only then.
 * - A second SIGTERM while it saves is ignored.
 * - With a data folder it first takes that folder's lock and keeps it until it is gone, so that the next Azurite never
 *   opens files which this one still writes.
 */

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ProcessLock } from './process-lock.ts';

/** Saving takes about 15 ms per thousand blobs; a predecessor that needs longer than this hangs. */
const PREDECESSOR_WAIT_MS = 60_000;

let stopping = false;
process.on('SIGTERM', () => {
  // Only this listener: Azurite has not begun to serve, so there is nothing to save.
  if (process.listenerCount('SIGTERM') === 1 && !stopping) process.exit(0);
  stopping = true;
});

// Azurite says that it is closing; when nobody listens any more, that must not end it before it has saved.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

process.stdin.on('close', () => {
  if (!stopping) process.kill(process.pid, 'SIGTERM');
});
const accounts = await firstLine();
process.stdin.resume();
// Azurite ends by running out of work; an open pipe must not count as work.
(process.stdin as unknown as { unref(): void }).unref();

const directory = process.argv.at(process.argv.indexOf('--location') + 1);
if (process.argv.includes('--location') && directory !== undefined) {
  const lock = ProcessLock.tryAcquire(join(directory, 'azurite-lock.sqlite'), PREDECESSOR_WAIT_MS);
  if (lock === undefined) {
    console.error(`another Azurite uses ${directory}`);
    process.exit(1);
  }
  // Also keeps the lock referenced: a collected one would be given back.
  process.once('exit', () => lock.release());
}

// Azurite takes its accounts from here alone; what a process sets itself is not seen from outside.
process.env.AZURITE_ACCOUNTS = accounts;
createRequire(import.meta.url)('azurite/dist/src/azurite.js');

async function firstLine(): Promise<string> {
  let text = '';
  return await new Promise((resolve) => {
    process.stdin.on('data', function take(data: Buffer) {
      text += data.toString();
      if (!text.includes('\n')) return;
      process.stdin.off('data', take);
      resolve(text.slice(0, text.indexOf('\n')));
    });
  });
}
