/** kill -9 at the worst moments: the work must come to the right end, with nothing lost. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../conformance/host/sample.ts';
import { linesOf, startSample, temporaryDirectory } from './harness.ts';

describe('a restart', () => {
  it('resumes a fan-out killed in the middle; only what was in flight runs twice', async () => {
    const stateDirectory = await temporaryDirectory();
    const logFile = join(stateDirectory, 'log');
    const first = await startSample({ stateDirectory, logFile });
    const id = await first.start('fanOut', { count: 256, ms: 20 });
    await until(
      () => linesOf(logFile),
      (lines) => lines.filter((line) => line.includes(' end ')).length >= 60,
    );
    await first.host.kill();
    const second = await startSample({ stateDirectory, logFile });
    expect(await second.ended(id, 30_000)).toMatchObject({ runtimeStatus: 'Completed', output: (255 * 256) / 2 });
    const begun = (await linesOf(logFile)).filter((line) => line.includes(' begin ')).length;
    expect(begun).toBeGreaterThanOrEqual(256);
    expect(begun).toBeLessThanOrEqual(256 + 16);
  });

  it('keeps timers, events, suspension, finished instances and the limits of one id', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory });
    const done = await first.run('sequence');
    const timer = await first.start('timer', { ms: 1500 });
    const event = await first.start('events', ['one', 'two'], 'the-only-one');
    await first.client('raise', event, { name: 'two', data: 2 });
    const suspended = await first.start('events', ['go']);
    await first.client('suspend', suspended, { reason: 'x' });
    await until(
      () => first.status(suspended),
      (status) => status.runtimeStatus === 'Suspended',
    );
    await first.host.kill();
    const second = await startSample({ stateDirectory });
    expect(await second.status(done.instanceId, 'showHistory=true')).toMatchObject({ output: 8 });
    expect((await second.client('start', 'events', { instanceId: event })).error).toContain('already exists');
    await second.client('raise', event, { name: 'one', data: 1 });
    expect((await second.ended(event)).output).toEqual([1, 2]);
    await second.client('raise', suspended, { name: 'go', data: 3 });
    expect((await second.status(suspended)).runtimeStatus).toBe('Suspended');
    await second.client('resume', suspended, { reason: 'y' });
    expect((await second.ended(suspended)).output).toEqual([3]);
    const { waitedMs } = (await second.ended(timer)).output as { waitedMs: number };
    expect(waitedMs).toBeGreaterThanOrEqual(1500);
  });

  it('a changed orchestrator with a live instance fails as non-deterministic', async () => {
    const stateDirectory = await temporaryDirectory();
    const before = await startSample({ stateDirectory });
    const id = await before.start('changed');
    await until(
      () => before.status(id, 'showHistory=true'),
      (status) => status.historyEvents?.some((event) => event.EventType === 'TaskCompleted') === true,
    );
    await before.host.kill();
    const after = await startSample({ stateDirectory, settings: { SAMPLE_CHANGED: '1' } });
    await after.client('raise', id, { name: 'go', data: 1 });
    const status = await after.ended(id);
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain(
      "Non-Deterministic workflow detected: an earlier execution scheduled activity 'echo'",
    );
  });

  it('ignores a torn last line', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory });
    const { instanceId } = await first.run('sequence');
    await first.host.kill();
    const journal = join(stateDirectory, 'journal.jsonl');
    await writeFile(journal, `${await readFile(journal, 'utf8')}[{"op":"purge","instanceId":"${instanceId}`);
    const second = await startSample({ stateDirectory });
    expect((await second.status(instanceId)).output).toBe(8);
  });
});
