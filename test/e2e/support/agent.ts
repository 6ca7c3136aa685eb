/** Runs the product as its users do: `bin/arius-agent.mjs` as a child process, on an embedded service of the test's own. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const BIN = fileURLToPath(new URL('../../../bin/arius-agent.mjs', import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The JSON lines of stdout but the passing status, when `--json` was asked for. */
  readonly messages: readonly Record<string, unknown>[];
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Put before the command, e.g. `setpriv …`. */
  readonly prefix?: readonly string[];
}

/** A place for one test's state, files and hash cache, gone afterwards. */
export class Workplace {
  readonly path: string;
  readonly #children = new Set<ChildProcess>();

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<Workplace> {
    return new Workplace(await mkdtemp(join(tmpdir(), 'arius-e2e-')));
  }

  get stateDirectory(): string {
    return join(this.path, 'state');
  }

  folder(name: string): string {
    return join(this.path, name);
  }

  #environment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('ARIUS_')));
    return {
      ...environment,
      // Everything the agent keeps for its user, the hash cache above all.
      HOME: join(this.path, 'home'),
      ARIUS_LOCAL_DIR: this.stateDirectory,
      ...extra,
    };
  }

  start(args: readonly string[], { env, prefix = [] }: RunOptions = {}): ChildProcess {
    const [command, ...rest] = [...prefix, process.execPath, BIN, ...args] as [string, ...string[]];
    const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'], env: this.#environment(env) });
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    return child;
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
    const child = this.start(args, options);
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (data) => {
      stdout += data;
    });
    child.stderr?.on('data', (data) => {
      stderr += data;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    const messages = args.includes('--json')
      ? stdout
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Record<string, unknown>)
          .filter(({ messageType }) => messageType !== 'status')
      : [];
    return { code, stdout: withoutStatus(stdout), stderr, messages };
  }

  /** Runs with `--json`, expects exit 0, and returns the summary. */
  async summary(args: readonly string[], options: RunOptions = {}): Promise<Record<string, unknown>> {
    const outcome = await this.run([...args, '--json'], options);
    expect(outcome, outcome.stderr + outcome.stdout).toMatchObject({ code: 0 });
    return lastMessage(outcome);
  }

  /** Nothing of this place may still run; then it is removed. */
  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    expect(await processesOf(this.path)).toEqual([]);
    await rm(this.path, { recursive: true, force: true });
  }
}

function withoutStatus(stdout: string): string {
  return stdout.replace(/^\{"messageType":"status".*\n/gm, '');
}

export function lastMessage({ messages }: Outcome): Record<string, unknown> {
  return messages.at(-1) ?? {};
}

/** What every failure owes its user: the exit code and message of the contract, and no stack trace. */
export function expectFailure(outcome: Outcome, expected: { exit: number; code: string }): void {
  const { code, stdout, stderr } = outcome;
  expect(lastMessage(outcome), stderr + stdout).toMatchObject({ messageType: 'error', code: expected.code });
  expect(lastMessage(outcome).message).toMatch(/\S/);
  expect(lastMessage(outcome).next).toMatch(/\S/);
  expect(code).toBe(expected.exit);
  expect(stdout + stderr).not.toMatch(/^\s+at .+:\d+/m);
  expect(stderr).not.toMatch(/Warning:/);
}

/** Command lines of processes that name a path in their arguments. Children need a moment to notice that a parent died. */
export async function processesOf(path: string, patienceMs = 15_000): Promise<string[]> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = await commandLinesWith(path);
    if (found.length === 0 || performance.now() > deadline) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function commandLinesWith(path: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const commandLine = await readFile(join('/proc', pid, 'cmdline'), 'utf8').catch(() => '');
    const environment = await readFile(join('/proc', pid, 'environ'), 'utf8').catch(() => '');
    if (commandLine.includes(path) || environment.includes(path)) found.push(commandLine.replaceAll('\0', ' '));
  }
  return found;
}

/** Ids of a process's children whose command line holds a text. */
export async function childrenOf(parent: number | undefined, text: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const status = await readFile(join('/proc', pid, 'status'), 'utf8').catch(() => '');
    const commandLine = await readFile(join('/proc', pid, 'cmdline'), 'utf8').catch(() => '');
    if (status.includes(`PPid:\t${parent}\n`) && commandLine.includes(text)) found.push(Number(pid));
  }
  return found;
}

/** The next line a process prints, as JSON. */
export async function firstMessage(child: ChildProcess): Promise<Record<string, unknown>> {
  if (child.stdout === null) throw new Error('the process was started without a stdout');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return JSON.parse(line) as Record<string, unknown>;
}
