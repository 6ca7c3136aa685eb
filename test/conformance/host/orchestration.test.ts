import { describe, expect, it } from 'vitest';
import { until } from './sample.ts';
import { useSample } from './target.ts';

const sample = useSample();

async function outputOf(name: string, input: unknown = {}): Promise<unknown> {
  const status = await sample.run(name, input);
  expect(status.runtimeStatus, JSON.stringify(status.output)).toBe('Completed');
  return status.output;
}

describe('activities', () => {
  it('run one after the other', async () => {
    expect(await outputOf('sequence')).toBe(8);
    expect(await outputOf('chain', { count: 20 })).toBe(20);
  });

  it('run side by side, up to the limit of host.json', async () => {
    expect(await outputOf('fanOut', { count: 256 })).toBe((255 * 256) / 2);
    const key = sample.id('limit');
    await outputOf('fanOut', { count: 40, ms: 20, key });
    const lines = await sample.notes(`wait ${key} `);
    let running = 0;
    const most = Math.max(...lines.map((line) => (running += line.includes(' begin ') ? 1 : -1)));
    expect(most).toBe(16);
  });

  it('see inputs as the real host converts them', async () => {
    expect(await outputOf('kinds')).toEqual([
      'string "text"',
      'string "123"',
      'string "{\\"a\\":1}"',
      'number 5',
      'number 1.5',
      'object {"a":[1,null]}',
      'object [1,"b"]',
      'string "True"',
      'string "False"',
      'undefined',
      'undefined',
    ]);
  });

  it('hand back their results', async () => {
    expect(await outputOf('results')).toEqual({
      nothing: null,
      text: 'text',
      bytes: Buffer.from('bytes').toString('base64'),
      object: { nested: { list: [1, 2.5, 'x', null, true] } },
    });
  });

  it('get their metadata', async () => {
    const metadata = (await outputOf('metadata')) as Record<string, unknown>;
    expect(metadata).toMatchObject({ data: { some: 'input' } });
    expect(Object.keys(metadata)).toEqual(['instanceId', 'data', expect.stringMatching(/^activityTrigger/)]);
  });

  it('fail with the texts of the real host, and the orchestrator goes on', async () => {
    const { caught, value } = (await outputOf('catching')) as { caught: string; value: number };
    expect(value).toBe(42);
    const [reason, details = ''] = caught.split(' \n ');
    expect(reason).toBe("Activity function 'fail' failed: expected");
    expect(JSON.parse(details)).toMatchObject({ ClassName: 'System.Exception', Message: 'expected' });
  });

  it('fail their orchestration when nobody catches', async () => {
    const status = await sample.run('failing', { message: 'boom' });
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain("Orchestrator function 'failing' failed: Activity function 'fail' failed: boom");
    const text = await sample.run('failing', { activity: 'throwText', message: 'only text' });
    expect(text.output).toContain("Activity function 'throwText' failed: only text");
  });
});

describe('sub-orchestrations', () => {
  it('fan out in two levels', async () => {
    expect(await outputOf('tree', { children: 16, count: 16 })).toBe(16 * 120);
  });

  it('know their parent and get their input', async () => {
    const id = await sample.start('parentOf', { name: 'whoAmI', input: { a: 1 } });
    const { returned } = (await sample.ended(id)).output as { returned: Record<string, unknown> };
    expect(returned).toMatchObject({ parent: id, input: { a: 1 } });
    expect(returned.id).toMatch(/^[0-9a-f]{32}:0$/);
    const chosen = sample.id('chosen');
    const named = await outputOf('parentOf', { name: 'whoAmI', input: 'text', id: chosen });
    expect(named).toMatchObject({ returned: { id: chosen, input: 'text' } });
  });

  it('fail to their parent', async () => {
    const { caught } = (await outputOf('parentOf', { name: 'throwing', input: {} })) as { caught: string };
    expect(caught).toContain("Orchestrator function 'throwing' failed: thrown by the orchestrator");
    const nested = (await outputOf('parentOf', { name: 'failing', input: { message: 'deep' } })) as { caught: string };
    expect(nested.caught).toContain("Activity function 'fail' failed: deep");
  });

  it('tell their parent when they are terminated', async () => {
    const child = sample.id('to-terminate');
    const parent = await sample.start('parentOf', { name: 'events', input: ['never'], id: child });
    await until(
      () => sample.client('status', child),
      (answer) => answer.status === 200,
    );
    await sample.client('terminate', child, { reason: 'enough' });
    expect((await sample.ended(parent)).output).toMatchObject({ caught: expect.stringContaining('enough') });
  });
});

describe('retries', () => {
  it('repeat with growing pauses until success, and the numbers still agree afterwards', async () => {
    const key = sample.id('a');
    const output = await outputOf('retrying', { key, times: 3, attempts: 5 });
    expect(output).toEqual({ result: 4, after: 8 });
    const times = (await sample.notes(`failTimes ${key} `)).map((line) => Number(line.split(' ')[2]));
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(pauses).toHaveLength(3);
    // 50 × 2^n, but at most 150; a pause can only be longer.
    for (const [index, expected] of [50, 100, 150].entries()) expect(pauses[index]).toBeGreaterThanOrEqual(expected);
  });

  it('give up after the last attempt, and the numbers still agree afterwards', async () => {
    const output = (await outputOf('retrying', { key: sample.id('b'), times: 9, attempts: 3 })) as {
      result: string;
      after: number;
    };
    expect(output.result).toContain("Activity function 'failTimes' failed: failure 3");
    expect(output.after).toBe(8);
    expect(await outputOf('retrying', { key: sample.id('c'), times: 9, attempts: 1 })).toMatchObject({ after: 8 });
  });

  it('work for sub-orchestrations', async () => {
    expect(await outputOf('retrying', { key: sample.id('d'), times: 1, attempts: 2, child: true })).toEqual({
      result: 2,
      after: 8,
    });
    expect(await outputOf('retrying', { key: sample.id('e'), times: 5, attempts: 2, child: true })).toMatchObject({
      after: 8,
    });
  });
});

describe('timers', () => {
  it('beyond all calendars fail their instance, not the host', async () => {
    const status = await sample.run('beyond');
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain('Invalid time value');
  });

  it('fire not before their time', async () => {
    const { waitedMs, value } = (await outputOf('timer', { ms: 120 })) as { waitedMs: number; value: number };
    expect(waitedMs).toBeGreaterThanOrEqual(120);
    expect(value).toBe(6);
    expect(await outputOf('timer', { ms: -1000 })).toMatchObject({ value: 6 });
  });

  it('lose or win a race, and are cancelled', async () => {
    expect(await outputOf('race', { timerMs: sample.ms(20), workMs: sample.ms(200), cancel: true })).toEqual({
      winner: 'timer',
      after: 10,
    });
    const id = await sample.start('race', { timerMs: 60_000, workMs: 1, cancel: true });
    expect((await sample.ended(id)).output).toEqual({ winner: 'work', after: 10 });
  });
});

describe('external events', () => {
  it('are received in the order they are waited for, whenever they came', async () => {
    const id = await sample.start('events', ['one', 'two']);
    await sample.client('raise', id, { name: 'two', data: { second: true } });
    await sample.client('raise', id, { name: 'one', data: null });
    expect((await sample.ended(id)).output).toEqual([null, { second: true }]);
  });

  it('may come before the orchestration has run at all', async () => {
    const id = await sample.start('gather', ['a', 'a', 'b']);
    for (const [name, data] of [
      ['a', 1],
      ['b', 2],
      ['a', 3],
    ]) {
      await sample.client('raise', id, { name, data });
    }
    const output = (await sample.ended(id)).output as number[];
    expect(output[2]).toBe(2);
    expect(output.slice(0, 2).sort()).toEqual([1, 3]);
  });
});

describe('continueAsNew', () => {
  it('starts over with the new input and an empty history', async () => {
    const id = await sample.start('counter', { left: 30, sum: 0 });
    const status = await sample.ended(id);
    expect(status).toMatchObject({ output: 465, customStatus: { left: 0 }, input: { left: 0 } });
    const withHistory = await sample.status(id, 'showHistory=true');
    expect(withHistory.historyEvents?.filter((event) => event.EventType === 'TaskCompleted')).toHaveLength(1);
  });

  it('carries over the events that come with the one it was called for, in order', async () => {
    const id = await sample.start('drain', { seen: [] });
    await sample.reached(id, 'Running');
    await sample.client('suspend', id, { reason: 'so that all events arrive at once' });
    await sample.reached(id, 'Suspended');
    for (const data of [1, 2, 3, 4]) await sample.client('raise', id, { name: 'data', data });
    await sample.client('resume', id, { reason: 'on' });
    expect((await sample.ended(id)).output).toEqual([1, 2, 3, 4]);
  });
});

describe('the context', () => {
  it('has a clock that moves between episodes and deterministic ids', async () => {
    const { times, guid } = (await outputOf('clock')) as { times: number[]; guid: string };
    expect(new Set(times).size).toBe(3);
    expect([...times].sort()).toEqual(times);
    expect(guid).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('keeps a custom status, up to 16 KB', async () => {
    expect(await sample.run('status', { size: 8000 })).toMatchObject({
      output: 'done',
      customStatus: 'x'.repeat(8000),
    });
    const tooLarge = await sample.run('status', { size: 8200 });
    expect(tooLarge.runtimeStatus).toBe('Failed');
    expect(tooLarge.output).toContain('16 KB');
  });
});
