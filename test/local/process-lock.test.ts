import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProcessLock } from '../../src/local/process-lock.ts';

const MODULE = new URL('../../src/local/process-lock.ts', import.meta.url).href;

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'arius-lock-'));
  path = join(directory, 'lock.sqlite');
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** A process that holds the lock for as long as it lives. */
async function startHolder(): Promise<{ kill(): Promise<void> }> {
  const script = `
    const { ProcessLock } = await import(${JSON.stringify(MODULE)});
    globalThis.lock = ProcessLock.tryAcquire(${JSON.stringify(path)});
    console.log(globalThis.lock === undefined ? 'refused' : 'held');
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  expect(await once(createInterface({ input: child.stdout }), 'line')).toEqual(['held']);
  return {
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

describe('ProcessLock', () => {
  it('is held once, and free again after release', () => {
    const first = ProcessLock.tryAcquire(path);
    expect(first).toBeDefined();
    expect(ProcessLock.tryAcquire(path)).toBeUndefined();
    first?.release();
    first?.release();
    const second = ProcessLock.tryAcquire(path);
    expect(second).toBeDefined();
    second?.release();
  });

  it('is refused while another process holds it, and free as soon as that is killed', async () => {
    const holder = await startHolder();
    expect(ProcessLock.tryAcquire(path)).toBeUndefined();
    await holder.kill();
    const lock = ProcessLock.tryAcquire(path);
    expect(lock).toBeDefined();
    lock?.release();
  });

  it('is waited for when asked', async () => {
    const holder = await startHolder();
    const killed = holder.kill();
    const lock = ProcessLock.tryAcquire(path, 20_000);
    expect(lock).toBeDefined();
    lock?.release();
    await killed;
  });

  it('fails where its file cannot be', () => {
    expect(() => ProcessLock.tryAcquire(join(directory, 'missing', 'lock'))).toThrow();
  });
});
