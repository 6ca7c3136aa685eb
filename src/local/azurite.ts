/**
 * Azurite (the storage emulator: blobs, queues, tables) as a child process that never outlives this one.
 *
 * Its metadata is saved every 5 s and when it is ended by SIGTERM; `stop` therefore is SIGTERM and waiting for the exit.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { AriusError } from '../errors.ts';
import { childEnvironment } from './child-environment.ts';
import { readOrCreateSecret } from './secret-file.ts';

/** The emulator's own account name: code that must know whether it talks to an emulator can tell. */
const ACCOUNT_NAME = 'devstoreaccount1';
/** Loading takes about 1.5 s, and 15 ms more per thousand blobs; a predecessor may be saving for as long. */
const START_MAX_MS = 120_000;
const STOP_MAX_MS = 60_000;
/** Of what Azurite printed, this much is kept to explain a failed start. */
const OUTPUT_KEPT_CHARACTERS = 4000;

const SERVICES = ['Blob', 'Queue', 'Table'] as const;
const LISTENING = /Azurite (Blob|Queue|Table) service is successfully listening at (http:\/\/127\.0\.0\.1:\d+)/g;

export interface Azurite {
  readonly connectionString: string;
  /** Resolves with the exit code (null after a signal) when the process is gone, asked or not. */
  readonly exited: Promise<number | null>;
  /** Ends it with everything saved. */
  stop(): Promise<void>;
}

/**
 * @param options.directory where blobs, queues and tables are kept, and beside them the account's key; undefined: in
 *   memory
 */
export async function startAzurite(options: { directory: string | undefined }): Promise<Azurite> {
  const { directory } = options;
  if (directory !== undefined) await mkdir(directory, { recursive: true, mode: 0o700 });
  // Not the well-known key of the emulator: any program of any user of this machine could reach the port with it.
  const key =
    directory === undefined ? randomBytes(64).toString('base64') : await readOrCreateSecret(directory, 'account-key');
  const child = spawnAzurite(directory, key);
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
    child.once('error', () => resolve(null));
  });
  const endpoints = await listening(child, exited);
  return {
    connectionString: connectionString(endpoints, key),
    exited,
    async stop() {
      child.kill('SIGTERM');
      await within(STOP_MAX_MS, exited, () => {
        child.kill('SIGKILL');
        return failed('Azurite did not end; what was written in its last seconds may be lost.');
      });
    },
  };
}

function spawnAzurite(directory: string | undefined, key: string): ChildProcess {
  const entry = fileURLToPath(new URL(import.meta.url.replace(/azurite\.(ts|js)$/, 'azurite-child.$1')));
  const persistence = directory === undefined ? ['--inMemoryPersistence'] : ['--location', directory];
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=DeprecationWarning',
      entry,
      '--silent',
      // Without this it phones home, and offline it takes 20 s to end.
      '--disableTelemetry',
      // The storage libraries speak newer API versions than it knows.
      '--skipApiVersionCheck',
      ...['--blobPort', '0', '--queuePort', '0', '--tablePort', '0'],
      ...persistence,
    ],
    {
      // Its own process group: Ctrl-C is for the command, which stops its children in the right order.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: childEnvironment(),
    },
  );
  // A child that is gone already says so by its exit.
  child.stdin?.on('error', () => undefined);
  // By the pipe: what is in a process's environment can be read from outside.
  child.stdin?.write(`${ACCOUNT_NAME}:${key}\n`);
  return child;
}

/** Waits for all three services; fails with what Azurite said when it ends first. */
async function listening(child: ChildProcess, exited: Promise<number | null>): Promise<Map<string, string>> {
  const endpoints = new Map<string, string>();
  let output = '';
  const ready = new Promise<'ready'>((resolve) => {
    const onOutput = (data: Buffer): void => {
      output = (output + data.toString()).slice(-OUTPUT_KEPT_CHARACTERS);
      for (const [, service, url] of output.matchAll(LISTENING)) endpoints.set(String(service), String(url));
      if (endpoints.size === SERVICES.length) resolve('ready');
    };
    child.stdout?.on('data', onOutput);
    child.stderr?.on('data', onOutput);
  });
  const outcome = await within(START_MAX_MS, Promise.race([ready, exited]), () => {
    child.kill('SIGKILL');
    return failed(`Azurite did not start in ${START_MAX_MS / 1000} s: ${output.trim()}`);
  });
  if (outcome !== 'ready') throw failed(`Azurite ended at start: ${output.trim()}`);
  return endpoints;
}

function connectionString(endpoints: Map<string, string>, key: string): string {
  const urls = SERVICES.map((service) => `${service}Endpoint=${endpoints.get(service)}/${ACCOUNT_NAME}`);
  return [`DefaultEndpointsProtocol=http`, `AccountName=${ACCOUNT_NAME}`, `AccountKey=${key}`, ...urls].join(';');
}

async function within<T>(limitMs: number, promise: Promise<T>, onTimeout: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(onTimeout()), limitMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function failed(detail: string): AriusError {
  return new AriusError(
    'service-unreachable',
    detail,
    'Run the command again; if it keeps failing, restart the machine.',
  );
}
