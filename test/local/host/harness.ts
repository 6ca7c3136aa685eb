/** Starts the sample app in child processes of the test's own, which it can kill, restart and look into. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { type HostProcess, startHostProcess } from '../../../src/local/host-process.ts';
import { Sample } from '../../conformance/host/sample.ts';
import { SAMPLE_APP, SAMPLE_SETTINGS } from '../../conformance/host/target.ts';

/** The sample app in a child process of the test's own. */
export class LocalSample extends Sample {
  readonly host: HostProcess;
  readonly lines: readonly string[];
  readonly #logFile: string | undefined;

  constructor(host: HostProcess, lines: readonly string[], logFile: string | undefined) {
    super(() => ({ url: host.url, masterKey: host.masterKey, functionKey: host.functionKey, patience: 1 }));
    this.host = host;
    this.lines = lines;
    this.#logFile = logFile;
  }

  async log(): Promise<string[]> {
    return this.#logFile === undefined ? [] : await linesOf(this.#logFile);
  }
}

export interface SampleOptions {
  readonly settings?: Record<string, string>;
  readonly secrets?: Record<string, string>;
  readonly stateDirectory?: string;
  readonly logFile?: string;
  readonly appDirectory?: string;
}

const running: HostProcess[] = [];
const directories: string[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((host) => host.kill()));
});
afterAll(async () => {
  await Promise.all(directories.splice(0).map((directory) => rm(directory, { recursive: true, force: true })));
});

export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'local-host-'));
  directories.push(directory);
  return directory;
}

export async function startSample(options: SampleOptions = {}): Promise<LocalSample> {
  const sample = await startSampleForFile(options);
  running.push(sample.host);
  return sample;
}

/** Without the end after each test, for files that share one host. */
export async function startSampleForFile(options: SampleOptions = {}): Promise<LocalSample> {
  const lines: string[] = [];
  const { logFile, stateDirectory } = options;
  const host = await startHostProcess({
    appDirectory: options.appDirectory ?? SAMPLE_APP,
    settings: {
      ...SAMPLE_SETTINGS,
      ...(logFile === undefined ? {} : { SAMPLE_LOG: logFile }),
      ...options.settings,
    },
    secrets: options.secrets ?? {},
    stateDirectory,
    onOutput: (line) => lines.push(line),
  });
  return new LocalSample(host, lines, logFile);
}

export async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}
