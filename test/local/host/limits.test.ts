import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { startSample, temporaryDirectory } from './harness.ts';

/** Sets a limit of a running process (util-linux). */
const PRLIMIT = 'prlimit';

describe('functionTimeout', () => {
  it('fails the function that exceeds it', async () => {
    const sample = await startSample({ settings: { AzureFunctionsJobHost__functionTimeout: '00:00:00.300' } });
    expect((await sample.fetch('/api/slow?ms=5000')).status).toBe(500);
    const status = await sample.run('fanOut', { count: 1, ms: 5000 });
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain('Timeout value of 00:00:00.3000000 was exceeded by function: Functions.wait');
    expect((await sample.run('sequence')).output).toBe(8);
  });
});

describe('a disk that takes no more', () => {
  it('ends the host, and the next one finds everything that was written', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory });
    const { instanceId } = await first.run('sequence');
    execFileSync(PRLIMIT, [`--pid=${first.host.pid}`, '--fsize=16384']);
    await first.client('start', 'fanOut', { input: { count: 256 }, instanceId: 'large' }).catch(() => undefined);
    await first.host.exited;
    const second = await startSample({ stateDirectory });
    expect((await second.status(instanceId)).output).toBe(8);
    const again = await second.client('start', 'fanOut', { input: { count: 256 }, instanceId: 'large' });
    expect(again.error ?? 'was not written').toMatch(/already exists|was not written/);
    expect((await second.ended('large')).output).toBe((255 * 256) / 2);
  });
});
