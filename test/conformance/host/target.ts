/**
 * The host under test: the one at HOST_URL (Core Tools or Azure, with the sample app in it), else a local host that is
 * started here. HOST_KEY is its master key and HOST_FUNCTION_KEY its default function key; without them the host is
 * taken to check no keys, as Core Tools do.
 */

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, vi } from 'vitest';
import { startHostProcess } from '../../../src/local/host-process.ts';
import { type Address, Sample } from './sample.ts';

export const SAMPLE_APP = fileURLToPath(new URL('./sample-app', import.meta.url));

/** What the sample app is set to; `local.settings.sample.json` beside it says the same to Core Tools. */
export const SAMPLE_SETTINGS = {
  HUB_NAME: 'SampleHub',
  EVERY_HOUR: '0 0 * * * *',
  WORK_QUEUE: 'sample-work',
  FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '100000',
} as const;

const { HOST_URL, HOST_KEY = '', HOST_FUNCTION_KEY = HOST_KEY } = process.env;
/** A start takes longer on a machine under load than a hook may by default. */
export const START_LIMIT_MS = 60_000;
/** Azure's queues are polled with pauses of seconds. */
const REMOTE_PATIENCE = 20;

if (HOST_URL !== undefined) vi.setConfig({ testTimeout: 30_000 * REMOTE_PATIENCE });

export const checksKeys = HOST_URL === undefined || HOST_KEY !== '';

/** Call once in a file; the host is there when its tests run. `storage` is a connection string. */
export function useSample(options: { settings?: Record<string, string>; storage?: string } = {}): Sample {
  let address: Address | undefined;
  let stop = async (): Promise<void> => undefined;
  beforeAll(async () => {
    if (HOST_URL !== undefined) {
      const url = HOST_URL.replace(/\/+$/, '');
      address = { url, masterKey: HOST_KEY, functionKey: HOST_FUNCTION_KEY, patience: REMOTE_PATIENCE };
      return;
    }
    const host = await startHostProcess({
      appDirectory: SAMPLE_APP,
      settings: { ...SAMPLE_SETTINGS, ...options.settings },
      secrets: options.storage === undefined ? {} : { AzureWebJobsStorage: options.storage },
      stateDirectory: undefined,
    });
    stop = host.stop;
    address = { url: host.url, masterKey: host.masterKey, functionKey: host.functionKey, patience: 1 };
  }, START_LIMIT_MS);
  afterAll(async () => await stop());
  return new Sample(() => {
    if (address === undefined) throw new Error('The host has not started.');
    return address;
  });
}
