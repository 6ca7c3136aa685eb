/** Where the local host may be, or always is, stricter than Azure. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { START_LIMIT_MS } from '../../conformance/host/target.ts';
import { type LocalSample, startSampleForFile } from './harness.ts';

let sample: LocalSample;
let strict: LocalSample;
beforeAll(async () => {
  sample = await startSampleForFile();
  strict = await startSampleForFile({ settings: { LOCAL_HOST_STRICT: '1', LOCAL_HOST_STRICT_OPEN_TASKS_MS: '300' } });
}, START_LIMIT_MS);
afterAll(async () => await Promise.all([sample.host.stop(), strict.host.stop()]));

async function failsStrictly(name: string, input: unknown, message: string): Promise<void> {
  const status = await strict.run(name, input);
  expect(status.runtimeStatus).toBe('Failed');
  expect(status.output).toContain(message);
}

describe('always', () => {
  it('a start is atomic: of twenty at once one starts', async () => {
    const body = { input: ['go'], instanceId: 'twenty' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => sample.client('start', 'events', body)));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(answers.filter((answer) => answer.error?.includes('already exists'))).toHaveLength(19);
  });

  it('the log names a function that is called and not there', async () => {
    await sample.reached(await sample.start('unknownActivity'), 'Running');
    expect(sample.lines.join('\n')).toContain("there is no function 'noSuchActivity'");
  });

  it('client calls of the app go to a path with a secret of the process', async () => {
    expect((await sample.fetch('/runtime/rpc/guess/durabletask/instances/')).status).toBe(404);
    const { result } = await sample.client('payload', 'x');
    expect(JSON.stringify(result)).not.toContain('/runtime/rpc/');
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
  it('is refused to clients with a reason', async () => {
    const id = await sample.start('events', ['never']);
    expect((await sample.client('rewind', id, { reason: 'x' })).error).toContain('Rewind is not supported');
    expect((await sample.client('readEntity', 'one')).error).toContain('Durable entities are not supported');
  });

  it('fails the orchestration with a reason', async () => {
    expect((await sample.run('entity')).output).toContain('Durable entities and locks are not supported');
    expect((await sample.run('callHttp')).output).toContain('callHttp is not supported');
  });
});
