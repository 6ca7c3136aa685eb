/**
 * `npm run bench:host`: the local host with the sample app of its tests. Figures of the trial build it was designed from
 * (two cores) stand beside as ratios; a fan-out may take twice as long.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
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

/** What the host's process has computed so far: unlike times, it says the same on a busy machine. Linux only. */
function cpuMs(): number {
  const file = `/proc/${host.pid}/stat`;
  if (!existsSync(file)) return Number.NaN;
  const [utime, stime] = readFileSync(file, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 13);
  return (Number(utime) + Number(stime)) * 10;
}

/** The build it was designed from, on two cores: from its best to its worst median. */
interface Reference {
  readonly ms: readonly [number, number];
  readonly journalKib?: number;
}

function ratio(value: number, [best, worst]: readonly [number, number]): string {
  const low = (value / worst).toFixed(2);
  const high = (value / best).toFixed(2);
  return best === worst ? `${low} × of ${best}` : `${low}–${high} × of ${best}–${worst}`;
}

async function report(title: string, name: string, input: unknown, reference?: Reference): Promise<void> {
  const before = statSync(journal).size;
  const cpuBefore = cpuMs();
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await runMs(name, input));
  const kib = (statSync(journal).size - before) / ROUNDS / 1024;
  const cpu = (cpuMs() - cpuBefore) / ROUNDS;
  const sorted = [...times].sort((left, right) => left - right);
  const at = (share: number): number => sorted[Math.floor(share * (ROUNDS - 1))] ?? 0;
  const compared = reference === undefined ? '' : ` = ${ratio(at(0.5), reference.ms)} ms`;
  console.log(
    `${title}: median ${at(0.5).toFixed(0)} ms${compared}; best ${at(0).toFixed(0)}, first ${times[0]?.toFixed(0)}; CPU ${cpu.toFixed(0)}`,
  );
  const { journalKib } = reference ?? {};
  const size = journalKib === undefined ? '' : ` = ${ratio(kib, [journalKib, journalKib])} KiB`;
  console.log(`  journal: ${kib > 0 ? `${kib.toFixed(0)} KiB${size}` : 'was compacted meanwhile'}`);
}

try {
  console.log(`start to ready: ${startMs.toFixed(0)} ms = ${ratio(startMs, [300, 500])} ms`);
  await report('256 no-op activities', 'fanOut', { count: 256 }, { ms: [46, 73], journalKib: 172 });
  await report('a chain of 100', 'chain', { count: 100 }, { ms: [120, 190] });
  await report('16 sub-orchestrations of 16', 'tree', { children: 16, count: 16 });
  await report('1,024 no-op activities', 'fanOut', { count: 1024 }, { ms: [400, 600] });
} finally {
  await host.stop();
  rmSync(directory, { recursive: true, force: true });
}
