/**
 * `npm run bench:host`: the local host with the sample app of its tests. Figures of the trial build it was designed from
 * (two cores) stand beside; a fan-out may take twice as long.
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startHostProcess } from '../src/local/host-process.ts';

const ROUNDS = 15;
const directory = mkdtempSync(join(tmpdir(), 'bench-host-'));
const journal = join(directory, 'journal.jsonl');

const startedAt = performance.now();
const host = await startHostProcess({
  appDirectory: new URL('../test/conformance/host/sample-app', import.meta.url).pathname,
  settings: { HUB_NAME: 'Bench', EVERY_HOUR: '0 0 * * * *' },
  stateDirectory: directory,
});
const startMs = performance.now() - startedAt;

/** From the call that starts it to its output, by the API that waits. */
async function runMs(name: string, input: unknown): Promise<number> {
  const path = `/runtime/webhooks/durabletask/orchestrators/${name}?timeout=60&pollingInterval=0.001`;
  const began = performance.now();
  const init = { method: 'POST', headers: { 'x-functions-key': host.masterKey }, body: JSON.stringify(input) };
  const response = await fetch(host.url + path, init);
  if (response.status !== 200) throw new Error(`${name}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
  return performance.now() - began;
}

async function report(title: string, name: string, input: unknown, trial: string): Promise<void> {
  const before = statSync(journal).size;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await runMs(name, input));
  const bytes = (statSync(journal).size - before) / ROUNDS;
  const sorted = [...times].sort((left, right) => left - right);
  const at = (share: number): string => (sorted[Math.floor(share * (ROUNDS - 1))] ?? 0).toFixed(0);
  const size = bytes > 0 ? `${(bytes / 1024).toFixed(0)} KiB of journal` : 'journal was compacted';
  console.log(
    `${title}: median ${at(0.5)} ms (first ${times[0]?.toFixed(0)}, best ${at(0)}), ${size}; trial: ${trial}`,
  );
}

try {
  console.log(`start to ready: ${startMs.toFixed(0)} ms; trial: 300-500 ms`);
  await report('256 no-op activities', 'fanOut', { count: 256 }, '46-73 ms, 172 KiB');
  await report('16 sub-orchestrations of 16', 'tree', { children: 16, count: 16 }, 'not measured');
  await report('a chain of 100', 'chain', { count: 100 }, '120-190 ms');
  await report('1,024 no-op activities', 'fanOut', { count: 1024 }, '400-600 ms');
} finally {
  await host.stop();
  rmSync(directory, { recursive: true, force: true });
}
