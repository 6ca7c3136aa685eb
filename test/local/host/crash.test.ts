/** kill -9 at the worst moments: the work must come to the right end, with nothing lost. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { linesOf, type Sample, startSample, temporaryDirectory, until } from './harness.ts';

const TREE = { children: 2, count: 4 };
const TREE_SUM = 12;

async function killed(sample: Sample): Promise<void> {
  expect(await sample.host.exited).toBeNull();
}

describe('a restart', () => {
  it('resumes a fan-out killed in the middle; only what was in flight runs twice', async () => {
    const stateDirectory = await temporaryDirectory();
    const logFile = join(stateDirectory, 'log');
    const first = await startSample({ stateDirectory, logFile });
    const id = await first.start('fanOut', { count: 256, ms: 20 });
    await until(
      () => linesOf(logFile),
      (lines) => lines.filter((line) => line.startsWith('end')).length >= 60,
    );
    await first.host.kill();
    const second = await startSample({ stateDirectory, logFile });
    expect(await second.ended(id, 30_000)).toMatchObject({ runtimeStatus: 'Completed', output: (255 * 256) / 2 });
    const begun = (await linesOf(logFile)).filter((line) => line.startsWith('begin')).length;
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

/** Commits of a small tree: the start, then episodes and activities. `LOCAL_HOST_CRASH_ALL=1` takes them all. */
const BOUNDARIES = Array.from({ length: 24 }, (_, index) => index + 1);
const SAMPLED = process.env.LOCAL_HOST_CRASH_ALL === '1' ? BOUNDARIES : [1, 2, 3, 7, 12];

describe('a crash at a commit boundary', () => {
  it.each(SAMPLED.flatMap((count) => [`before:${count}`, `after:${count}`]))('%s ends well', async (boundary) => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory, settings: { LOCAL_HOST_CRASH: boundary } });
    await first.client('start', 'tree', { input: TREE, instanceId: 'tree' }).catch(() => undefined);
    const outcome = await Promise.race([first.host.exited, first.ended('tree', 20_000).catch(() => first.host.exited)]);
    // The smallest number of commits the tree can take is 15: one start, five episodes at least, eight activities, …
    if (Number(boundary.split(':')[1]) <= 12) expect(outcome).toBeNull();
    if (outcome !== null) {
      // There were fewer commits than that this time: no crash, and the tree has ended.
      expect(outcome).toMatchObject({ runtimeStatus: 'Completed', output: TREE_SUM });
      return;
    }
    const second = await startSample({ stateDirectory });
    // Whoever got no answer asks again, as a client of Azure would: only a lost start may start anything.
    const again = await second.client('start', 'tree', { input: TREE, instanceId: 'tree' });
    if (boundary !== 'before:1') expect(again.error ?? 'it had ended').toMatch(/already exists|it had ended/);
    expect(await second.ended('tree', 20_000)).toMatchObject({ runtimeStatus: 'Completed', output: TREE_SUM });
  });

  it('of one kind only', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory, settings: { LOCAL_HOST_CRASH: 'after:3:activity' } });
    await first.client('start', 'tree', { input: TREE, instanceId: 'tree' }).catch(() => undefined);
    await killed(first);
    const second = await startSample({ stateDirectory });
    expect((await second.ended('tree')).output).toBe(TREE_SUM);
  });
});
