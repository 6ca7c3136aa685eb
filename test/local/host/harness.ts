/** Starts the sample app in a real child process and talks to it through the real durable client. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach } from 'vitest';
import { type HostProcess, startHostProcess } from '../../../src/local/host-process.ts';

const SAMPLE_APP = fileURLToPath(new URL('./sample-app', import.meta.url));

/** For the hooks that start a host: on a machine under load it takes longer than a hook may by default. */
export const START_LIMIT_MS = 60_000;

export interface Status {
  name: string;
  instanceId: string;
  runtimeStatus: string;
  input: unknown;
  output: unknown;
  customStatus: unknown;
  createdTime: string;
  lastUpdatedTime: string;
  historyEvents?: Record<string, unknown>[];
}

export interface Answer {
  status: number;
  result?: unknown;
  error?: string;
}

export interface Sample {
  readonly host: HostProcess;
  readonly lines: string[];
  /** One call of the durable client inside the app. */
  client(call: string, id?: string, body?: unknown): Promise<Answer>;
  start(name: string, input?: unknown, instanceId?: string): Promise<string>;
  /** The status body by the management URL, with history when wanted. */
  status(id: string, query?: string): Promise<Status>;
  ended(id: string, withinMs?: number): Promise<Status>;
  run(name: string, input?: unknown): Promise<Status>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  log(): Promise<string[]>;
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

export async function startSample(options: SampleOptions = {}): Promise<Sample> {
  const sample = await startSampleForFile(options);
  running.push(sample.host);
  return sample;
}

/** Without the end after each test, for files that share one host. */
export async function startSampleForFile(options: SampleOptions = {}): Promise<Sample> {
  const lines: string[] = [];
  const { logFile, stateDirectory } = options;
  const host = await startHostProcess({
    appDirectory: options.appDirectory ?? SAMPLE_APP,
    settings: {
      HUB_NAME: 'SampleHub',
      EVERY_HOUR: '0 0 * * * *',
      ...(logFile === undefined ? {} : { SAMPLE_LOG: logFile }),
      ...options.settings,
    },
    secrets: options.secrets ?? {},
    stateDirectory,
    onOutput: (line) => lines.push(line),
  });
  return sampleOf(host, lines, logFile);
}

function sampleOf(host: HostProcess, lines: string[], logFile: string | undefined): Sample {
  const sample: Sample = {
    host,
    lines,
    fetch: (path, init) => fetch(host.url + path, init),
    client: async (call, id = '', body = undefined) => {
      const response = await sample.fetch(`/api/client/${call}/${id}`, {
        method: 'POST',
        headers: { 'x-functions-key': host.functionKey },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, ...(text === '' ? {} : (JSON.parse(text) as object)) };
    },
    start: async (name, input = {}, instanceId = undefined) => {
      const answer = await sample.client('start', name, { input, instanceId });
      if (answer.status !== 200) throw new Error(`start of ${name}: ${JSON.stringify(answer)}`);
      return answer.result as string;
    },
    status: async (id, query = '') => {
      const path = `/runtime/webhooks/durabletask/instances/${encodeURIComponent(id)}?code=${host.masterKey}&${query}`;
      const response = await sample.fetch(path);
      if (response.status === 404) throw new Error(`no instance ${id}`);
      return (await response.json()) as Status;
    },
    ended: async (id, withinMs = 15_000) =>
      await until(
        () => sample.status(id),
        (status) => ['Completed', 'Failed', 'Terminated'].includes(status.runtimeStatus),
        withinMs,
      ),
    run: async (name, input = {}) => await sample.ended(await sample.start(name, input)),
    log: async () => (logFile === undefined ? [] : await linesOf(logFile)),
  };
  return sample;
}

export async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** Polls until the value is as wanted; fails with the last value. */
export async function until<T>(read: () => Promise<T>, wanted: (value: T) => boolean, withinMs = 15_000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await read();
    if (wanted(value)) return value;
    if (Date.now() > deadline) throw new Error(`not reached: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
