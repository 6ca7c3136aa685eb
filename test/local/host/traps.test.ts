/** The traps of the library and of the real host: the local host must fall into them in the same way. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sample, START_LIMIT_MS, startSample, startSampleForFile, temporaryDirectory, until } from './harness.ts';

let sample: Sample;
let strict: Sample;
beforeAll(async () => {
  sample = await startSampleForFile();
  strict = await startSampleForFile({ settings: { LOCAL_HOST_STRICT: '1', LOCAL_HOST_STRICT_OPEN_TASKS_MS: '300' } });
}, START_LIMIT_MS);
afterAll(async () => await Promise.all([sample.host.stop(), strict.host.stop()]));

async function staysRunning(name: string, input: unknown = {}, ms = 700): Promise<void> {
  const id = await sample.start(name, input);
  await new Promise((resolve) => setTimeout(resolve, ms));
  expect((await sample.status(id)).runtimeStatus).toBe('Running');
}

async function failsStrictly(name: string, input: unknown, message: string): Promise<void> {
  const status = await strict.run(name, input);
  expect(status.runtimeStatus).toBe('Failed');
  expect(status.output).toContain(message);
}

describe('what goes wrong as on Azure', () => {
  it('a task in two compound tasks is scheduled twice, and another task gets its result', async () => {
    const status = await sample.run('sharedTask');
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
    const id = await sample.start('uncaughtEarly');
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
    const status = await sample.ended(id);
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain("Activity function 'fail' failed: early");
  });

  it('a retried task beside a failing one makes the numbers diverge: the next call gets a foreign result', async () => {
    const status = await sample.run('retryBesideFailure');
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
    const id = await sample.start('race', { timerMs: 2500, workMs: 1, cancel: false });
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
    expect((await sample.ended(id)).output).toEqual({ winner: 'work', after: 10 });
  });

  it('an event whose name has another case is consumed and never seen', async () => {
    const id = await sample.start('events', ['Go']);
    await sample.client('raise', id, { name: 'go', data: 1 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await sample.status(id)).runtimeStatus).toBe('Running');
  });

  it('events that are pending at continueAsNew are lost', async () => {
    const id = await sample.start('continueWithEvents', { round: 0 });
    await sample.client('raise', id, { name: 'data', data: 'early' });
    await sample.client('raise', id, { name: 'go', data: {} });
    expect((await sample.ended(id)).output).toBe('lost');
  });

  it('continueAsNew with a text puts it into quotes', async () => {
    expect((await sample.run('continueWithText', 'first')).output).toBe('"second"');
  });

  it('retryTimeoutInMilliseconds hangs', async () => await staysRunning('retryTimeout'));

  it('unknown function names hang, and the log says so', async () => {
    await staysRunning('unknownActivity', {}, 300);
    await staysRunning('unknownChild', {}, 300);
    expect(sample.lines.join('\n')).toContain("there is no function 'noSuchActivity'");
  });

  it('a sub-orchestration with the id of a running instance never ends', async () => {
    await sample.start('events', ['never'], 'taken');
    await staysRunning('parentOf', { name: 'whoAmI', input: 1, id: 'taken' }, 300);
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
});

describe('strict mode fails', () => {
  it('unknown names', async () => {
    await failsStrictly('unknownActivity', {}, "The function 'noSuchActivity' doesn't exist");
    await failsStrictly('unknownChild', {}, "The function 'noSuchOrchestrator' doesn't exist");
  });

  it('retryTimeoutInMilliseconds', async () => await failsStrictly('retryTimeout', {}, 'do not set it'));

  it('a sub-orchestration id that is taken', async () => {
    await strict.start('events', ['never'], 'taken');
    const status = await strict.run('parentOf', { name: 'whoAmI', input: 1, id: 'taken' });
    expect(status.output).toMatchObject({ caught: expect.stringContaining('already exists') });
  });

  it('tasks left open after the return', async () => {
    await failsStrictly('race', { timerMs: 60_000, workMs: 1, cancel: false }, 'left tasks open');
    const patient = await strict.run('race', { timerMs: 1, workMs: 100, cancel: true });
    expect(patient.runtimeStatus).toBe('Completed');
  });
});

describe('what is left out', () => {
  it('fails the orchestration with a reason', async () => {
    expect((await sample.run('entity')).output).toContain('Durable entities and locks are not supported');
    expect((await sample.run('callHttp')).output).toContain('callHttp is not supported');
  });
});
