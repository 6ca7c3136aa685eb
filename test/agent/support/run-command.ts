/** Runs a command of the agent in this process and gathers what it says. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { EmbeddedServiceLauncher } from '../../../src/agent/embedded.ts';
import { runAgent } from '../../../src/agent/main.ts';
import { FakeService } from './fake-service.ts';

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The JSON lines of stdout. */
  readonly lines: Record<string, unknown>[];
  /** The last summary among them. */
  readonly summary: Record<string, unknown>;
}

const folders: string[] = [];
const services: FakeService[] = [];

/** Removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'arius-agent-test-'));
  folders.push(folder);
  return folder;
}

/** Stopped after the test. */
export async function startFakeService(): Promise<FakeService> {
  const service = await new FakeService().start();
  services.push(service);
  return service;
}

afterEach(async () => {
  for (const service of services.splice(0)) {
    await service.stop();
  }
  for (const folder of folders.splice(0)) {
    rmSync(folder, { recursive: true, force: true });
  }
});

export const noLauncher: EmbeddedServiceLauncher = {
  start: () => Promise.reject(new Error('this test must not start an embedded service')),
};

export interface TestAgent {
  readonly agentDirectory: string;
  run(argv: readonly string[], options?: RunCommandOptions): Promise<CommandResult>;
}

export interface RunCommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly embedded?: EmbeddedServiceLauncher;
  readonly signal?: AbortSignal;
  /** Without `--json` and `--url`. */
  readonly bare?: boolean;
  readonly terminal?: boolean;
}

export function testAgent(service: FakeService | undefined, agentDirectory = temporaryFolder()): TestAgent {
  return {
    agentDirectory,
    async run(argv, options = {}) {
      let stdout = '';
      let stderr = '';
      const own = options.bare === true || service === undefined ? [] : ['--json', '--url', service.url];
      const exitCode = await runAgent([...argv, ...own], {
        embedded: options.embedded ?? noLauncher,
        stdout: { write: (text) => (stdout += text), isTTY: options.terminal === true },
        stderr: { write: (text) => (stderr += text), isTTY: options.terminal === true },
        env: { ARIUS_AGENT_DIR: agentDirectory, ARIUS_TOKEN: 'test-key', ARIUS_DEBUG: '1', ...options.env },
        // Pauses between attempts are counted elsewhere; here they would only take time.
        sleep: async () => undefined,
        signal: options.signal ?? new AbortController().signal,
      });
      const lines = stdout
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      const summary = lines.findLast(({ messageType }) => messageType === 'summary') ?? {};
      return { exitCode, stdout, stderr, lines, summary };
    },
  };
}
