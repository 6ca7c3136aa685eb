/** The traps of the library and of the real host: the local host must fall into them in the same way. */

import { describe, expect, it } from 'vitest';
import { useSample } from './target.ts';

const sample = useSample();

async function staysRunning(name: string, input: unknown = {}, milliseconds = 700): Promise<void> {
  const id = await sample.start(name, input);
  await sample.pause(milliseconds);
  expect((await sample.status(id)).runtimeStatus).toBe('Running');
}

describe('what goes wrong as on Azure', () => {
  it('a task in two compound tasks is scheduled twice, and another task gets its result', async () => {
    const status = await sample.run('sharedTask', { ms: sample.ms(40) });
    expect(status).toMatchObject({ runtimeStatus: 'Completed', output: 3 });
  });

  it('Task.all twice on finished tasks hangs', async () => await staysRunning('allTwice'));

  it('Task.all of nothing throws', async () => {
    expect((await sample.run('allEmpty')).output).toContain('you must specify at least one Task');
  });

  it('after an early failure the next action starts only when all siblings are done', async () => {
    const { instanceId } = await sample.run('earlyFailure');
    const { historyEvents = [] } = await sample.status(instanceId, 'showHistory=true');
    const waits = historyEvents.filter((event) => event.FunctionName === 'wait');
    expect(String(waits[1]?.ScheduledTime) >= String(waits[0]?.Timestamp)).toBe(true);
  });

  it('an uncaught failure ends the instance only when all siblings are done', async () => {
    const id = await sample.start('uncaughtEarly', { ms: sample.ms(2000) });
    await sample.pause(250);
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
    const status = await sample.ended(id);
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain("Activity function 'fail' failed: early");
  });

  it('a retried task beside a failing one makes the numbers diverge: the next call gets a foreign result', async () => {
    const status = await sample.run('retryBesideFailure', { key: sample.id('beside') });
    expect(status.runtimeStatus).toBe('Completed');
    expect(status.output).toEqual({});
  });

  it('an input property called Timestamp becomes a date', async () => {
    expect((await sample.run('timestampKind', { Timestamp: '2026-01-01T00:00:00Z' })).output).toBe('object');
  });

  it('an ampersand cuts a reason short', async () => {
    const id = await sample.start('events', ['never']);
    await sample.client('terminate', id, { reason: 'this & that' });
    expect((await sample.ended(id)).output).toBe('this ');
  });

  it('a timer that is not cancelled keeps the instance running until it fires', async () => {
    const id = await sample.start('race', { timerMs: sample.ms(2500), workMs: 1, cancel: false });
    await sample.pause(400);
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
    expect((await sample.ended(id)).output).toEqual({ winner: 'work', after: 10 });
  });

  it('an event whose name has another case is consumed and never seen', async () => {
    const id = await sample.start('events', ['Go']);
    await sample.client('raise', id, { name: 'go', data: 1 });
    await sample.pause(300);
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
  });

  it('events that are pending at continueAsNew are lost', async () => {
    const id = await sample.start('continueWithEvents', { round: 0, ms: sample.ms(150) });
    await sample.client('raise', id, { name: 'data', data: 'early' });
    await sample.client('raise', id, { name: 'go', data: {} });
    expect((await sample.ended(id)).output).toBe('lost');
  });

  it('continueAsNew with a text puts it into quotes', async () => {
    expect((await sample.run('continueWithText', 'first')).output).toBe('"second"');
  });

  it('retryTimeoutInMilliseconds hangs', async () => await staysRunning('retryTimeout'));

  it('unknown function names hang', async () => {
    await staysRunning('unknownActivity', {}, 300);
    await staysRunning('unknownChild', {}, 300);
  });

  it('a sub-orchestration with the id of a running instance never ends', async () => {
    const taken = sample.id('taken');
    await sample.start('events', ['never'], taken);
    await staysRunning('parentOf', { name: 'whoAmI', input: 1, id: taken }, 300);
  });
});
