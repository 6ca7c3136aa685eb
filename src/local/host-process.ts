/** Starts the Functions host as a child process and holds the other end of its pipe. */

import { type ChildProcess, spawn } from 'node:child_process';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HOST_START_LIMIT_MS, STOP_LIMIT_MS } from '../limits.ts';
import { childEnvironment } from './child-environment.ts';
import type { ChildMessage, StartMessage, StopMessage } from './host/parent-link.ts';
import { Redactor } from './host/redactor.ts';

const OUTPUT_LINES_KEPT = 20;

export interface HostProcessOptions {
  readonly appDirectory: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Sent over the pipe and set as environment inside the child; never in its arguments or initial environment. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** undefined: everything in memory. */
  readonly stateDirectory: string | undefined;
  readonly port?: number;
  onOutput?(line: string): void;
}

export interface HostProcess {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  readonly masterKey: string;
  readonly functionKey: string;
  readonly pid: number;
  stop(): Promise<void>;
  /** kill -9 */
  kill(): Promise<void>;
  /** The exit code, or null after a signal. */
  readonly exited: Promise<number | null>;
}

/** The host did not become ready; the message says why, with the last lines of its output. */
export class HostStartError extends Error {
  override readonly name = 'HostStartError';
}

export async function startHostProcess(options: HostProcessOptions): Promise<HostProcess> {
  const entry = fileURLToPath(new URL(`./host/main${extname(import.meta.url)}`, import.meta.url));
  // The lock and, from sources, the stripping of types are called experimental by Node 22 on every start.
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry], {
    cwd: options.appDirectory,
    env: childEnvironment(),
    // A group of its own: Ctrl-C in a terminal reaches the parent alone, which stops its children in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const redactor = new Redactor();
  for (const secret of Object.values(options.secrets ?? {})) redactor.add(secret);
  const lastLines = forwardOutput(child, redactor, options.onOutput?.bind(options));
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  const ready = await untilReady(child, options, exited, lastLines);
  return {
    url: `http://127.0.0.1:${ready.port}`,
    masterKey: ready.masterKey,
    functionKey: ready.functionKey,
    pid: child.pid ?? 0,
    exited,
    stop: async (): Promise<void> => {
      const message: StopMessage = { type: 'stop' };
      if (child.connected) child.send(message);
      const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS + 1000);
      await exited;
      clearTimeout(limit);
    },
    kill: async (): Promise<void> => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function untilReady(
  child: ChildProcess,
  options: HostProcessOptions,
  exited: Promise<number | null>,
  lastLines: readonly string[],
): Promise<Extract<ChildMessage, { type: 'ready' }>> {
  const { appDirectory, settings, secrets = {}, stateDirectory, port = 0 } = options;
  const start: StartMessage = { type: 'start', appDirectory, settings, secrets, stateDirectory, port };
  let limit: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const fail = (reason: string): void => reject(new HostStartError(`The local host did not start: ${reason}`));
      limit = setTimeout(() => fail(`not ready after ${HOST_START_LIMIT_MS / 1000} s.`), HOST_START_LIMIT_MS);
      child.on('message', (message: ChildMessage) => {
        if (message.type === 'waiting') child.send(start);
        else if (message.type === 'ready') resolve(message);
        else fail(message.reason);
      });
      child.once('error', (error) => fail(error.message));
      void exited.then((code) => fail([`it ended with code ${code}.`, ...lastLines].join('\n')));
    });
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    throw error;
  } finally {
    clearTimeout(limit);
  }
}

/** Returns the list of the newest lines, which goes on being filled. */
function forwardOutput(
  child: ChildProcess,
  redactor: Redactor,
  onOutput: ((line: string) => void) | undefined,
): readonly string[] {
  const kept: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (raw) => {
      // The host's own records are clean; what the app prints itself is not.
      const line = redactor.redact(raw);
      kept.push(line);
      if (kept.length > OUTPUT_LINES_KEPT) kept.shift();
      onOutput?.(line);
    });
  }
  return kept;
}
