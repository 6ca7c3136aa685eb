/**
 * `npm run bench:archive -- [--files N] [--large MiB] [--storage fast|azurite]`: archives a generated tree through the
 * real agent, host and function app; then again, unchanged; then restores it. Prints, for each, time, files and bytes a
 * second, and the peak resident memory of the agent's process (Linux). The fast storage server stands in for storage
 * where Azurite would be what is measured; with `--storage azurite` a plain upload of blobs of 1 KiB to the same Azurite
 * says what its ceiling is.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pMap from 'p-map';
import { startAzurite } from '../src/local/azurite.ts';
import { startHostProcess } from '../src/local/host-process.ts';
import { azureStorage } from '../src/storage/azure/azure-storage.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MIB = 1024 * 1024;
const FILES_PER_FOLDER = 200;
const SAMPLE_EVERY_MS = 100;
const CEILING_BLOBS = 2000;
const CEILING_WORKERS = 8;

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '20000' },
    large: { type: 'string', default: '0' },
    storage: { type: 'string', default: 'fast' },
  },
});
const fileCount = Number(values.files);
const largeMib = Number(values.large);
const work = mkdtempSync(join(tmpdir(), 'bench-archive-'));

/** Small files of 0 to 4 KiB that differ; half of each compresses. The large file repeats nothing. */
function generate(folder: string): void {
  for (let index = 0; index < fileCount; index += 1) {
    const directory = join(folder, `d${Math.floor(index / FILES_PER_FOLDER)}`);
    if (index % FILES_PER_FOLDER === 0) mkdirSync(directory, { recursive: true });
    const seed = createHash('sha256').update(`file ${index}`).digest();
    const half = Buffer.alloc(seed.readUInt16LE(0) % 2048, seed);
    writeFileSync(join(directory, `f${index}`), Buffer.concat([half, Buffer.alloc(half.length, 'text ')]));
  }
  if (largeMib > 0) {
    const file = openSync(join(folder, 'large.bin'), 'w');
    for (let index = 0; index < largeMib; index += 1) {
      const piece = Buffer.alloc(MIB);
      for (let at = 0; at < MIB; at += 32) createHash('sha256').update(`${index} ${at}`).digest().copy(piece, at);
      writeSync(file, piece);
    }
    closeSync(file);
  }
}

interface Store {
  readonly connectionString: string;
  stop(): Promise<void>;
}

async function fastStorage(): Promise<Store> {
  const server = spawn(process.execPath, [join(ROOT, 'test/support/fast-storage-server.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(server.stdout), 'line')) as [string];
  return {
    connectionString: line,
    async stop() {
      server.kill('SIGTERM');
      await once(server, 'exit');
    },
  };
}

/** The highest resident memory the kernel has seen of a process and its direct successor, until it ends. */
async function peakMib(child: ChildProcess): Promise<number> {
  let peak = 0;
  const timer = setInterval(() => {
    try {
      const [, kib = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      peak = Math.max(peak, Number(kib) / 1024);
    } catch {
      // Ended between two looks, or not Linux.
    }
  }, SAMPLE_EVERY_MS);
  await once(child, 'exit');
  clearInterval(timer);
  return peak;
}

async function agent(title: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const flags = ['--max-old-space-size=96', '--max-semi-space-size=4', '--disable-warning=ExperimentalWarning'];
  const child = spawn(process.execPath, [...flags, join(ROOT, 'bin/run-agent.mjs'), ...args, '--json'], {
    env: { ...process.env, MALLOC_ARENA_MAX: '2', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let last: Record<string, unknown> = {};
  createInterface(child.stdout).on('line', (line) => {
    const message = JSON.parse(line) as Record<string, unknown>;
    if (message.messageType === 'summary' || message.messageType === 'error') last = message;
  });
  const memoryMib = await peakMib(child);
  if (child.exitCode !== 0) throw new Error(`${title} ended with ${child.exitCode}: ${JSON.stringify(last)}`);
  const seconds = Number(last.durationMs) / 1000;
  const files = Number(last.filesScanned ?? last.filesWanted);
  const mib = Number(last.bytesScanned ?? last.bytesRestored) / MIB;
  console.log(
    `${title.padEnd(14)} ${seconds.toFixed(1).padStart(7)} s  ${(files / seconds).toFixed(0).padStart(6)} files/s  ` +
      `${(mib / seconds).toFixed(1).padStart(6)} MiB/s  agent's peak ${memoryMib.toFixed(0)} MiB`,
  );
}

/** The rate at which storage takes creates from a plain client: an archive, a stub for each small file, cannot be faster. */
async function reportCeiling(connectionString: string): Promise<void> {
  const container = azureStorage({ connectionString }).container('ceiling');
  await container.createIfMissing();
  const began = performance.now();
  const names = Array.from({ length: CEILING_BLOBS }, (_, index) => `blob-${index}`);
  const options = { condition: { absent: true }, contentType: 'text/plain' } as const;
  await pMap(names, (name) => container.write(name, Buffer.alloc(1024), options), { concurrency: CEILING_WORKERS });
  const perSecond = CEILING_BLOBS / ((performance.now() - began) / 1000);
  console.log(`storage takes ${perSecond.toFixed(0)} creates of 1 KiB a second from a plain client`);
}

async function main(): Promise<void> {
  const folder = join(work, 'tree');
  mkdirSync(folder);
  generate(folder);
  const store = values.storage === 'azurite' ? await startAzurite({ directory: undefined }) : await fastStorage();
  try {
    await reportCeiling(store.connectionString);
    const secrets = {
      ARIUS_STORAGE_CONNECTION_STRING: store.connectionString,
      AzureWebJobsStorage: store.connectionString,
      DurableStorage: store.connectionString,
    };
    const settings = { TASK_HUB: 'bench' };
    const host = await startHostProcess({ appDirectory: ROOT, settings, secrets, stateDirectory: undefined });
    try {
      const env = { ARIUS_URL: host.url, ARIUS_TOKEN: host.functionKey, ARIUS_AGENT_DIR: join(work, 'agent') };
      await agent('archive', ['archive', folder], env);
      await agent('archive again', ['archive', folder], env);
      await agent('restore', ['restore', join(work, 'restored')], env);
    } finally {
      await host.stop();
    }
  } finally {
    await store.stop();
    rmSync(work, { recursive: true });
  }
}

await main();
