/** A folder, a fake service and an agent between them; and whether what was archived comes back. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { FakeService } from './fake-service.ts';
import { startFakeService, type TestAgent, temporaryFolder, testAgent } from './run-command.ts';

export interface Setup {
  readonly service: FakeService;
  readonly agent: TestAgent;
  readonly folder: string;
  write(path: string, content: string | Buffer): void;
}

export async function setup(): Promise<Setup> {
  const service = await startFakeService();
  const folder = temporaryFolder();
  return {
    service,
    agent: testAgent(service),
    folder,
    write(path, content) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    },
  };
}

/** Restores the newest snapshot and compares it with the folder, byte by byte. */
export async function expectRestored(agent: TestAgent, folder: string, argv: string[] = []): Promise<void> {
  const target = join(temporaryFolder(), 'restored');
  expect(await agent.run(['restore', target, ...argv])).toMatchObject({ exitCode: 0 });
  expect(execFileSync('diff', ['-r', folder, target]).toString()).toBe('');
}
