import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../conformance/host/sample.ts';
import { linesOf, startSample, temporaryDirectory } from './harness.ts';

async function logFile(): Promise<string> {
  return join(await temporaryDirectory(), 'log');
}

function count(lines: readonly string[], prefix: 'begin' | 'end'): number {
  return lines.filter((line) => line.includes(` ${prefix} `)).length;
}

describe('the test hooks', () => {
  it('run activities twice, side by side, and the second result changes nothing', async () => {
    const file = await logFile();
    const settings = { LOCAL_HOST_DUPLICATE_ACTIVITIES: '1' };
    const sample = await startSample({ logFile: file, settings });
    expect((await sample.run('fanOut', { count: 10, ms: 10 })).output).toBe(45);
    await until(
      () => linesOf(file),
      (lines) => count(lines, 'end') === 20,
    );
    expect(count(await linesOf(file), 'begin')).toBe(20);
  });

  it('run an activity again later', async () => {
    const file = await logFile();
    const settings = { LOCAL_HOST_DUPLICATE_ACTIVITIES: '1', LOCAL_HOST_DUPLICATE_DELAY_MS: '300' };
    const sample = await startSample({ logFile: file, settings });
    expect((await sample.run('fanOut', { count: 5, ms: 10 })).output).toBe(10);
    expect(count(await linesOf(file), 'begin')).toBe(5);
    await until(
      () => linesOf(file),
      (lines) => count(lines, 'end') === 10,
    );
  });

  it('run a share of the activities twice, the same ones for the same seed', async () => {
    const duplicates = async (): Promise<string[]> => {
      const file = await logFile();
      const settings = { LOCAL_HOST_DUPLICATE_ACTIVITIES: '0.3', LOCAL_HOST_SEED: '7' };
      const sample = await startSample({ logFile: file, settings });
      await sample.run('fanOut', { count: 16, ms: 1 });
      await sample.host.stop();
      return (await linesOf(file)).filter((line) => line.includes(' begin ')).sort();
    };
    const first = await duplicates();
    expect(first.length).toBeGreaterThan(16);
    expect(first.length).toBeLessThan(32);
    expect(await duplicates()).toEqual(first);
  });

  it('lose one of two starts that race, as the real engine does', async () => {
    const sample = await startSample({ settings: { LOCAL_HOST_RACY_STARTS_MS: '5000' } });
    expect(await sample.start('events', ['one'], 'raced')).toBe('raced');
    expect(await sample.start('events', ['two'], 'raced')).toBe('raced');
    await sample.client('raise', 'raced', { name: 'one', data: 1 });
    expect(await sample.ended('raced')).toMatchObject({ input: ['one'], output: [1] });
  });

  it('delay messages', async () => {
    const sample = await startSample({ settings: { LOCAL_HOST_DELAY_MESSAGES: '1:200' } });
    const startedAt = performance.now();
    expect((await sample.run('sequence')).output).toBe(8);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(800);
    // The event is there before the start of the instance, yet the start is processed first.
    const id = await sample.start('events', ['go']);
    await sample.client('raise', id, { name: 'go', data: 1 });
    expect((await sample.ended(id)).output).toEqual([1]);
  });

  it('record the history of each execution, as the library got it', async () => {
    const recordDirectory = await temporaryDirectory();
    const sample = await startSample({ settings: { LOCAL_HOST_RECORD_DIRECTORY: recordDirectory } });
    const { instanceId } = await sample.run('counter', { left: 1, sum: 0 });
    const files = await readdir(recordDirectory);
    expect(files.every((file) => file.startsWith(`counter-${instanceId}-`))).toBe(true);
    const records = await Promise.all(
      files.map(async (file) => {
        const text = await readFile(join(recordDirectory, file), 'utf8');
        return JSON.parse(text) as { input: { left: number }; history: { EventType: number }[] };
      }),
    );
    const [last, first] = records.sort((a, b) => a.input.left - b.input.left);
    expect(last?.input).toEqual({ left: 0, sum: 1 });
    expect(first?.input).toEqual({ left: 1, sum: 0 });
    expect(first?.history.map((event) => event.EventType)).toEqual([12, 0, 4, 13, 12, 5]);
  });

  it('make long timers short, and both sides number their legs', async () => {
    const settings = { LOCAL_HOST_SHORT_TIMER_MAX_MS: '100', LOCAL_HOST_TIMER_LEG_MS: '60' };
    const sample = await startSample({ settings });
    const { instanceId, output } = await sample.run('timer', { ms: 250 });
    expect(output).toMatchObject({ value: 6 });
    expect((output as { waitedMs: number }).waitedMs).toBeGreaterThanOrEqual(250);
    const { historyEvents = [] } = await sample.status(instanceId, 'showHistory=true');
    expect(historyEvents.filter((event) => event.EventType === 'TimerFired').length).toBeGreaterThanOrEqual(3);
  });

  it('are not seen by the app', async () => {
    const sample = await startSample({ settings: { LOCAL_HOST_STRICT: '1' } });
    const environment = (await (await sample.fetch('/api/environment')).json()) as Record<string, string>;
    expect(Object.keys(environment).filter((name) => name.startsWith('LOCAL_HOST'))).toEqual([]);
  });
});
