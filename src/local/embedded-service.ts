/**
 * The embedded service: Azurite, the function app and the durable backend, as child processes, for the time of a command.
 *
 * - One owner per state directory: whoever holds its lock, which ends with the owner's process. Others share the running
 *   service of a `serve`, and wait for a command to end.
 * - The host is stopped before Azurite, because it writes until it is gone; both end by themselves when their parent dies.
 */

import { createWriteStream, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { EmbeddedService, EmbeddedServiceLauncher, EmbeddedServiceOptions } from '../agent/embedded.ts';
import { AriusError } from '../errors.ts';
import { passphraseSettingOf } from '../service/passphrases.ts';
import { startAzurite } from './azurite.ts';
import { startHostProcess } from './host-process.ts';
import { ProcessLock } from './process-lock.ts';
import { type RunningService, readServiceFile, removeServiceFile, writeServiceFile } from './service-file.ts';
import { openStateDirectory, type StateDirectory } from './state-directory.ts';

/** Azurite saves its metadata every 5 s; after this long a write is on disk. */
const SAVED_AFTER_MS = 6000;
const LOCK_RETRY_MS = 200;
const HEALTH_TIMEOUT_MS = 2000;

export const embeddedServiceLauncher: EmbeddedServiceLauncher = {
  async start(options: EmbeddedServiceOptions): Promise<EmbeddedService> {
    const state = await openStateDirectory(options.stateDirectory);
    const found = await lockOrRunningService(state, options);
    return found instanceof ProcessLock ? await startOwned(state, found, options) : shared(state, found);
  },
};

/** The lock of the directory, or the service of the `serve` that holds it. Waits as long as a command holds it. */
async function lockOrRunningService(
  state: StateDirectory,
  { onProgress, signal }: EmbeddedServiceOptions,
): Promise<ProcessLock | RunningService> {
  let told = false;
  for (;;) {
    signal.throwIfAborted();
    const lock = ProcessLock.tryAcquire(state.lockFile);
    if (lock !== undefined) return lock;
    const running = await readServiceFile(state.serviceFile);
    // A `serve` that does not answer is starting or ending; either way the next look is a better one.
    if (running?.kind === 'serve' && (await isHealthy(running))) return running;
    if (!told) onProgress(`Waiting for another command that uses ${state.path}`);
    told = true;
    await sleep(LOCK_RETRY_MS);
  }
}

async function isHealthy(service: RunningService): Promise<boolean> {
  try {
    const response = await fetch(`${service.url}/api/health`, {
      headers: { 'x-functions-key': service.functionKey },
      signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS),
    });
    return response.ok;
  } catch {
    return false;
  }
}

function shared(state: StateDirectory, service: RunningService): EmbeddedService {
  return {
    ...addresses(state, service),
    shared: true,
    // Its owner tells; here, requests fail.
    failed: new Promise(() => undefined),
    saved: () => sleep(SAVED_AFTER_MS),
    stop: async () => undefined,
  };
}

async function startOwned(
  state: StateDirectory,
  lock: ProcessLock,
  options: EmbeddedServiceOptions,
): Promise<EmbeddedService> {
  const undo: (() => void | Promise<void>)[] = [() => lock.release()];
  try {
    // What a killed predecessor left; nobody may take it for ours.
    await removeServiceFile(state.serviceFile);
    options.onProgress('Starting the embedded service');
    const azurite = await startAzurite({ directory: state.storage });
    undo.push(() => azurite.stop());
    options.signal.throwIfAborted();
    const host = await startHost(state, azurite.connectionString, options.passphrases);
    undo.push(() => host.stop());
    const service: RunningService = {
      kind: options.keepRunning ? 'serve' : 'command',
      url: host.url,
      functionKey: host.functionKey,
      storageConnectionString: azurite.connectionString,
      pid: process.pid,
    };
    await writeServiceFile(state.serviceFile, service);
    undo.push(() => removeServiceFile(state.serviceFile));
    options.signal.throwIfAborted();
    let stopped: Promise<void> | undefined;
    return {
      ...addresses(state, service),
      shared: false,
      failed: Promise.race([azurite.exited, host.exited]).then(() => endedByItself(state)),
      saved: () => sleep(SAVED_AFTER_MS),
      stop: () => (stopped ??= unwind(undo)),
    };
  } catch (error) {
    await unwind(undo).catch(() => undefined);
    options.signal.throwIfAborted();
    throw startFailure(error, state);
  }
}

/** Last started, first ended. What cannot be ended does not keep the rest running. */
async function unwind(undo: (() => void | Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of undo.splice(0).reverse()) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function startHost(
  state: StateDirectory,
  connectionString: string,
  passphrases: Readonly<Record<string, string>>,
): ReturnType<typeof startHostProcess> {
  const log = createWriteStream(state.logFile, { mode: 0o600 });
  const forTests = process.env.ARIUS_MAX_SHARD_ENTRY_COUNT;
  return await startHostProcess({
    appDirectory: projectRoot(),
    stateDirectory: state.hub,
    settings: { TASK_HUB: 'arius', ...(forTests === undefined ? {} : { ARIUS_MAX_SHARD_ENTRY_COUNT: forTests }) },
    secrets: {
      ARIUS_STORAGE_CONNECTION_STRING: connectionString,
      AzureWebJobsStorage: connectionString,
      DurableStorage: connectionString,
      ...Object.fromEntries(Object.entries(passphrases).map(([name, text]) => [passphraseSettingOf(name), text])),
    },
    onOutput: (line) => log.write(`${line}\n`),
  });
}

/** The folder of package.json and host.json: two levels up from here in the sources, three in the build. */
function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

function addresses(
  state: StateDirectory,
  service: RunningService,
): Omit<EmbeddedService, 'shared' | 'failed' | 'saved' | 'stop'> {
  return {
    url: service.url,
    functionKey: service.functionKey,
    portalUrl: `${service.url}/api/portal`,
    storageConnectionString: service.storageConnectionString,
    stateDirectory: state.path,
  };
}

function startFailure(error: unknown, state: StateDirectory): AriusError {
  if (error instanceof AriusError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new AriusError(
    'service-unreachable',
    `The embedded service did not start: ${reason}`,
    `Look at ${state.logFile}, then run the command again.`,
    { cause: error },
  );
}

function endedByItself(state: StateDirectory): AriusError {
  return new AriusError(
    'service-unreachable',
    'The embedded service ended by itself.',
    `Look at ${state.logFile}, then run the command again; it continues where this one stopped.`,
  );
}
