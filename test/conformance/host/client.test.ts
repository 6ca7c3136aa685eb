import { describe, expect, it } from 'vitest';
import { checksKeys, useSample } from './target.ts';

const BASE = '/runtime/webhooks/durabletask';
const sample = useSample();

async function waiting(instanceId?: string): Promise<string> {
  const id = await sample.start('events', ['go'], instanceId);
  await sample.reached(id, 'Running');
  return id;
}

describe('startNew', () => {
  it('gives an id, or takes the one it is given', async () => {
    expect(await sample.start('sequence')).toMatch(/^[0-9a-f]{32}$/);
    expect(await sample.start('sequence', {}, sample.id('my:own_1'))).toBe(sample.id('my:own_1'));
  });

  it('passes an empty text when there is no input', async () => {
    const { result } = await sample.client('start', 'whoAmI');
    expect((await sample.ended(String(result))).output).toMatchObject({ input: '' });
  });

  it('rejects an unknown orchestrator, and a function that is none', async () => {
    for (const name of ['unknown', 'echo']) {
      const answer = await sample.client('start', name, { input: {} });
      expect(answer.error).toContain('unexpected status code: 400');
    }
  });

  it('with the id of a running instance is refused as "already exists", and the instance goes on', async () => {
    const id = await waiting(sample.id('singleton'));
    const second = await sample.client('start', 'events', { input: ['other'], instanceId: id });
    // Newer hosts may say 409; the words are what an app has to go by.
    expect(second.error).toMatch(/unexpected status code: (500|409)/);
    expect(second.error).toMatch(/An Orchestration instance with the status \w+ already exists\./);
    await sample.client('raise', id, { name: 'go', data: 1 });
    expect((await sample.ended(id)).output).toEqual([1]);
  });

  it('with the id of a finished instance replaces it', async () => {
    await sample.ended(await sample.start('sequence', {}, sample.id('again')));
    await sample.ended(await sample.start('whoAmI', { second: true }, sample.id('again')));
    expect(await sample.status(sample.id('again'))).toMatchObject({ name: 'whoAmI', input: { second: true } });
  });

  it.each([
    ['an id with @ in front', `orchestrators/sequence/${encodeURIComponent('@a@b')}`, '{}'],
    ['an id with a slash', `orchestrators/sequence/${encodeURIComponent('a/b')}`, '{}'],
    ['an id that is too long', `orchestrators/sequence/${'x'.repeat(257)}`, '{}'],
    ['a body that is not JSON', 'orchestrators/sequence', '{'],
  ])('answers 400 to %s', async (_, path, body) => {
    expect((await sample.api('POST', path, body)).status).toBe(400);
  });

  it('can wait for the end', async () => {
    const done = await sample.api('POST', 'orchestrators/sequence?timeout=10&pollingInterval=0.05', '{}');
    expect([done.status, await done.json()]).toEqual([200, 8]);
    const failed = await sample.api('POST', 'orchestrators/throwing?timeout=10&pollingInterval=0.05', '{}');
    expect(await failed.json()).toMatchObject({ runtimeStatus: 'Failed' });
    const late = await sample.api('POST', 'orchestrators/events?timeout=0.2&pollingInterval=0.05', '["go"]');
    expect(late.status).toBe(202);
  });
});

describe('createCheckStatusResponse', () => {
  it('gives URLs that work with the key in them', async () => {
    const response = await sample.fetch('/api/start-and-check/sequence', {
      method: 'POST',
      headers: { 'x-functions-key': sample.functionKey },
      body: '{}',
    });
    expect(response.status).toBe(202);
    expect(response.headers.get('location')).toContain(sample.url);
    const urls = (await response.json()) as { id: string; statusQueryGetUri: string };
    await sample.ended(urls.id);
    const status = await fetch(urls.statusQueryGetUri);
    expect([status.status, await status.json()]).toMatchObject([200, { output: 8 }]);
  });

  it('uses the address and the hub of the host in management payloads', async () => {
    const { result } = await sample.client('payload', 'some-id');
    const { rewindPostUri, statusQueryGetUri } = result as Record<string, string>;
    expect(rewindPostUri).toMatch(new RegExp(`^${sample.url}${BASE}/instances/some-id/rewind\\?reason=`));
    // host.json says "%HUB_NAME%".
    expect(statusQueryGetUri).toContain('taskHub=SampleHub');
  });
});

describe('getStatus', () => {
  it('tells what an instance is doing', async () => {
    const id = await waiting();
    const response = await sample.api('GET', `instances/${id}`);
    expect(response.status).toBe(202);
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await response.json()).toEqual({
      name: 'events',
      instanceId: id,
      runtimeStatus: 'Running',
      input: ['go'],
      output: null,
      customStatus: null,
      createdTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      lastUpdatedTime: expect.stringMatching(/Z$/),
    });
    const { result } = await sample.client('status', id);
    expect(result).toMatchObject({ runtimeStatus: 'Running', input: ['go'] });
  });

  it('rejects an unknown id', async () => {
    expect((await sample.client('status', 'nobody')).error).toContain('replied with HTTP 404');
  });

  it('shows a failure as 200, or as 500 when asked to', async () => {
    const { instanceId } = await sample.run('throwing');
    expect((await sample.api('GET', `instances/${instanceId}`)).status).toBe(200);
    const query = 'returnInternalServerErrorOnFailure=true';
    expect((await sample.api('GET', `instances/${instanceId}?${query}`)).status).toBe(500);
  });

  it('shows the history in the shape of the API', async () => {
    const { instanceId } = await sample.run('sequence');
    const status = await sample.status(instanceId, 'showHistory=true&showHistoryOutput=true&showInput=false');
    expect(status.input).toBeNull();
    expect(status.historyEvents?.map((event) => event.EventType)).toEqual([
      'ExecutionStarted',
      'TaskCompleted',
      'TaskCompleted',
      'TaskCompleted',
      'ExecutionCompleted',
    ]);
    expect(status.historyEvents?.[1]).toMatchObject({
      FunctionName: 'double',
      Result: 2,
      ScheduledTime: expect.any(String),
    });
    expect(status.historyEvents?.[1]).not.toHaveProperty('TaskScheduledId');
    const plain = await sample.status(instanceId, 'showHistory=true');
    expect(plain.historyEvents?.[1]).not.toHaveProperty('Result');
  });
});

describe('listing and purging', () => {
  it('filters by status, time and prefix, and pages', async () => {
    const ids = await Promise.all(
      Array.from({ length: 120 }, (_, index) => sample.start('throwing', {}, sample.id(`page-${index}`))),
    );
    await Promise.all(ids.map((id) => sample.ended(id)));
    const { result } = await sample.client('statusBy', '', { runtimeStatus: ['Failed'] });
    const found = (result as { instanceId: string }[]).map((status) => status.instanceId);
    expect(found).toEqual(expect.arrayContaining(ids));
    expect(new Set(found).size).toBe(found.length);
    const none = await sample.api('GET', 'instances/?createdTimeTo=2000-01-01T00:00:00Z');
    expect(await none.json()).toEqual([]);
    const first = await sample.api('GET', `instances/?instanceIdPrefix=${sample.id('page-')}&top=50`);
    expect(await first.json()).toHaveLength(50);
    const token = first.headers.get('x-ms-continuation-token') ?? '';
    const last = await sample.api('GET', `instances/?instanceIdPrefix=${sample.id('page-')}&top=100`, undefined, {
      'x-ms-continuation-token': token,
    });
    expect(await last.json()).toHaveLength(70);
    expect(last.headers.get('x-ms-continuation-token')).toBe('');
  });

  it('purges one instance, even a running one', async () => {
    const id = await waiting();
    expect((await sample.client('purge', id)).result).toMatchObject({ instancesDeleted: 1 });
    expect((await sample.client('purge', id)).result).toMatchObject({ instancesDeleted: 0 });
  });

  it('purges by filter, which needs a time', async () => {
    expect((await sample.api('DELETE', 'instances/?runtimeStatus=Failed')).status).toBe(400);
    const running = await waiting();
    const finished = await sample.run('sequence');
    const filter = { createdTimeFrom: '2000-01-01T00:00:00Z', runtimeStatus: ['Completed', 'Failed', 'Terminated'] };
    const { result } = await sample.client('purgeBy', '', filter);
    expect((result as { instancesDeleted: number }).instancesDeleted).toBeGreaterThan(0);
    expect((await sample.api('GET', `instances/${finished.instanceId}`)).status).toBe(404);
    expect((await sample.status(running)).runtimeStatus).toBe('Running');
    expect((await sample.api('DELETE', 'instances/?createdTimeFrom=2000-01-01&runtimeStatus=Failed')).status).toBe(404);
  });
});

describe('raiseEvent', () => {
  it('needs JSON', async () => {
    const id = await waiting();
    expect((await sample.api('POST', `instances/${id}/raiseEvent/go`, '1')).status).toBe(400);
    const json = { 'content-type': 'application/json' };
    expect((await sample.api('POST', `instances/${id}/raiseEvent/go`, '', json)).status).toBe(400);
    expect((await sample.api('POST', `instances/${id}/raiseEvent/go`, '1', json)).status).toBe(202);
    const withoutData = await sample.client('raise', await waiting(), { name: 'go' });
    expect(withoutData.error).toContain('unexpected status code: 400');
  });

  it('rejects an unknown instance and resolves for a finished one', async () => {
    expect((await sample.client('raise', 'nobody', { name: 'go', data: 1 })).error).toContain('No instance with ID');
    const { instanceId } = await sample.run('sequence');
    expect((await sample.client('raise', instanceId, { name: 'go', data: 1 })).status).toBe(200);
    const json = { 'content-type': 'application/json' };
    expect((await sample.api('POST', `instances/${instanceId}/raiseEvent/go`, '1', json)).status).toBe(410);
  });
});

describe('terminate, suspend and resume', () => {
  it('ends an instance with the reason as its output', async () => {
    const id = await waiting();
    await sample.client('terminate', id, { reason: 'no longer wanted' });
    expect(await sample.ended(id)).toMatchObject({ runtimeStatus: 'Terminated', output: 'no longer wanted' });
    expect((await sample.client('terminate', 'nobody', { reason: 'x' })).error).toContain('No instance with ID');
  });

  it('ends an instance whose activity runs; the late result changes nothing', async () => {
    const id = await sample.start('fanOut', { count: 2, ms: sample.ms(300) });
    await sample.reached(id, 'Running');
    await sample.client('terminate', id, { reason: 'now' });
    await sample.ended(id);
    await sample.pause(400);
    expect(await sample.status(id)).toMatchObject({ runtimeStatus: 'Terminated', output: 'now' });
  });

  it('holds events and decisions back while suspended', async () => {
    const id = await sample.start('chain', { count: 3 });
    const events = await waiting();
    await sample.client('suspend', events, { reason: 'pause' });
    await sample.reached(events, 'Suspended');
    expect((await sample.client('suspend', events, { reason: 'again' })).error).toContain('status code: 500');
    await sample.client('raise', events, { name: 'go', data: 'held' });
    await sample.ended(id);
    expect((await sample.status(events)).runtimeStatus).toBe('Suspended');
    await sample.client('resume', events, { reason: 'on' });
    expect(await sample.ended(events)).toMatchObject({ runtimeStatus: 'Completed', output: ['held'] });
  });

  it('schedules what was decided while suspended only after the resumption', async () => {
    const id = await sample.start('race', { timerMs: sample.ms(1200), workMs: sample.ms(1800), cancel: true });
    await sample.reached(id, 'Running');
    await sample.client('suspend', id, { reason: 'pause' });
    await sample.pause(1500);
    const scheduled = async (): Promise<number | undefined> =>
      (await sample.status(id, 'showHistory=true')).historyEvents?.filter(
        (event) => event.EventType === 'TaskCompleted',
      ).length;
    expect(await scheduled()).toBe(0);
    await sample.client('resume', id, { reason: 'on' });
    expect((await sample.ended(id)).output).toEqual({ winner: 'timer', after: 10 });
  });

  it('refuses to resume what is not suspended', async () => {
    expect((await sample.client('resume', await waiting(), { reason: 'x' })).error).toContain('status code: 500');
  });
});

describe('restart', () => {
  it('runs the same input again, under a new or the same id', async () => {
    const { instanceId } = await sample.run('whoAmI', { some: 'input' });
    const answer = await sample.api('POST', `instances/${instanceId}/restart?restartWithNewInstanceId=true`);
    const { id } = (await answer.json()) as { id: string };
    expect(id).not.toBe(instanceId);
    expect(await sample.ended(id)).toMatchObject({ input: { some: 'input' } });
    const same = await sample.api('POST', `instances/${instanceId}/restart?restartWithNewInstanceId=false`);
    expect(await same.json()).toMatchObject({ id: instanceId });
    expect((await sample.api('POST', 'instances/nobody/restart')).status).toBe(400);
  });
});

describe('the API', () => {
  it.runIf(checksKeys)('wants the master or the durable key', async () => {
    const status = async (query: string): Promise<number> =>
      (await sample.fetch(`${BASE}/instances/?top=1${query}`)).status;
    expect(await status('')).toBe(401);
    expect(await status('&code=wrong')).toBe(401);
    expect(await status(`&code=${sample.masterKey}`)).toBe(200);
  });

  it('answers 404 to anything else', async () => {
    for (const path of ['unknown', 'instances/a/b/c', 'orchestrators'])
      expect((await sample.api('POST', path, '')).status).toBe(404);
    expect((await sample.api('PUT', 'instances/')).status).toBe(404);
  });
});
