/**
 * `npm run start:func`: the function app in Azure Functions Core Tools, for those who have them, with the storage emulator
 * beside it. What runs is what would run in Azure: Microsoft's host and its Durable Task extension.
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAzurite } from '../src/local/azurite.ts';
import { buildWhenNeeded } from './build.mjs';

const NO_FUNC = `Azure Functions Core Tools 4 are needed: there is no command "func" on the PATH.
Install them (https://learn.microsoft.com/azure/azure-functions/functions-run-local says how for each system), for example
with "npm install -g azure-functions-core-tools@4", and run this again. Without them, "npm run arius -- serve" runs the
same app in the embedded host.`;

const STORAGE_SETTINGS = ['AzureWebJobsStorage', 'DurableStorage', 'ARIUS_STORAGE_CONNECTION_STRING'];

interface StartOptions {
  /** The folder of host.json. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  build(): void;
}

/** @returns the exit code */
export async function startFunc({ root, environment, build }: StartOptions): Promise<number> {
  const found = spawnSync('func', ['--version'], { env: environment, encoding: 'utf8' });
  if (found.error !== undefined || found.status !== 0) {
    console.error(NO_FUNC);
    return 1;
  }
  build();
  writeSettings(root);
  const directory = join(root, '.arius', 'func-storage');
  const azurite = await startAzurite({ directory });
  try {
    // What is in the environment has precedence over local.settings.json: the emulator has a key and ports of its own.
    const storage = Object.fromEntries(STORAGE_SETTINGS.map((name) => [name, azurite.connectionString]));
    console.error(`Starting Core Tools ${found.stdout.trim()} with storage in ${directory}`);
    const func = spawn('func', ['start'], { cwd: root, env: { ...environment, ...storage }, stdio: 'inherit' });
    // Ctrl-C reaches Core Tools as well; the emulator ends after them.
    const wait = (): void => undefined;
    const passOn = (): boolean => func.kill('SIGTERM');
    process.on('SIGINT', wait).on('SIGTERM', passOn);
    const [code] = (await once(func, 'exit')) as [number | null];
    process.off('SIGINT', wait).off('SIGTERM', passOn);
    return code ?? 1;
  } finally {
    await azurite.stop();
  }
}

/** Writes local.settings.json from the sample when there is none; the passphrase in the sample is only an example. */
function writeSettings(root: string): void {
  const file = join(root, 'local.settings.json');
  if (existsSync(file)) return;
  const sample = JSON.parse(readFileSync(join(root, 'local.settings.sample.json'), 'utf8')) as {
    Values: Record<string, string>;
  };
  const values = Object.entries(sample.Values).filter(([name]) => !name.startsWith('ARIUS_PASSPHRASE__'));
  const settings = { ...sample, Values: Object.fromEntries(values) };
  writeFileSync(file, `${JSON.stringify(settings, undefined, 2)}\n`, { mode: 0o600 });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  process.exitCode = await startFunc({ root, environment: process.env, build: () => buildWhenNeeded(root) });
}
