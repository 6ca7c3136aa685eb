/** Orchestrators: one per feature and one per trap. */

import * as df from 'durable-functions';

interface FanOut {
  count: number;
  /** Named in the notes of activities that wait. */
  key?: string;
  activity?: string;
  ms?: number;
}

df.app.orchestration('sequence', function* (context) {
  const first: number = yield context.df.callActivity('double', 1);
  const second: number = yield context.df.callActivity('double', first);
  return yield context.df.callActivity('double', second);
});

df.app.orchestration('chain', function* (context) {
  let value = 0;
  for (let index = 0; index < (context.df.getInput() as FanOut).count; index += 1) {
    value = yield context.df.callActivity('noop', value + 1);
  }
  return value;
});

df.app.orchestration('fanOut', function* (context) {
  const { count, ms = 0, key } = context.df.getInput() as FanOut;
  const tasks = Array.from({ length: count }, (_, index) =>
    ms === 0 ? context.df.callActivity('noop', index) : context.df.callActivity('wait', { ms, value: index, key }),
  );
  const results: number[] = yield context.df.Task.all(tasks);
  return results.reduce((sum, value) => sum + value, 0);
});

df.app.orchestration('tree', function* (context) {
  const { children, count, ms = 0 } = context.df.getInput() as FanOut & { children: number };
  const tasks = Array.from({ length: children }, () => context.df.callSubOrchestrator('fanOut', { count, ms }));
  const sums: number[] = yield context.df.Task.all(tasks);
  return sums.reduce((sum, value) => sum + value, 0);
});

df.app.orchestration('kinds', function* (context) {
  const seen: string[] = [];
  for (const input of ['text', '123', '{"a":1}', 5, 1.5, { a: [1, null] }, [1, 'b'], true, false, null, undefined]) {
    seen.push(yield context.df.callActivity('kindOf', input));
  }
  return seen;
});

df.app.orchestration('results', function* (context) {
  const nothing: unknown = yield context.df.callActivity('returnNothing');
  const text: unknown = yield context.df.callActivity('returnText');
  const bytes: unknown = yield context.df.callActivity('returnBytes');
  const object: unknown = yield context.df.callActivity('echo', { nested: { list: [1, 2.5, 'x', null, true] } });
  return { nothing, text, bytes, object };
});

df.app.orchestration('metadata', function* (context) {
  return yield context.df.callActivity('triggerMetadata', { some: 'input' });
});

df.app.orchestration('failing', function* (context) {
  const { activity = 'fail', message } = context.df.getInput() as { activity?: string; message: string };
  yield context.df.callActivity(activity, message);
});

df.app.orchestration('catching', function* (context) {
  try {
    yield context.df.callActivity('fail', 'expected');
  } catch (error) {
    const value: number = yield context.df.callActivity('double', 21);
    return { caught: (error as Error).message, value };
  }
  return 'not reached';
});

df.app.orchestration('throwing', function* () {
  throw new Error('thrown by the orchestrator');
});

df.app.orchestration('parentOf', function* (context) {
  const { name, input, id } = context.df.getInput() as { name: string; input: unknown; id?: string };
  try {
    return { returned: (yield context.df.callSubOrchestrator(name, input, id)) as unknown };
  } catch (error) {
    return { caught: (error as Error).message };
  }
});

df.app.orchestration('whoAmI', function* (context) {
  return { id: context.df.instanceId, parent: context.df.parentInstanceId, input: context.df.getInput() };
});

df.app.orchestration('retrying', function* (context) {
  const { key, times, attempts, child } = context.df.getInput() as {
    key: string;
    times: number;
    attempts: number;
    child?: boolean;
  };
  const options = new df.RetryOptions(50, attempts);
  options.backoffCoefficient = 2;
  options.maxRetryIntervalInMilliseconds = 150;
  let result: unknown;
  try {
    result = child
      ? yield context.df.callSubOrchestratorWithRetry('failOnce', options, { key, times })
      : yield context.df.callActivityWithRetry('failTimes', options, { key, times });
  } catch (error) {
    result = (error as Error).message;
  }
  const after: number = yield context.df.callActivity('double', 4);
  return { result, after };
});

df.app.orchestration('failOnce', function* (context) {
  return yield context.df.callActivity('failTimes', context.df.getInput());
});

df.app.orchestration('timer', function* (context) {
  const { ms } = context.df.getInput() as { ms: number };
  const start = context.df.currentUtcDateTime.getTime();
  yield context.df.createTimer(new Date(start + ms));
  const value: number = yield context.df.callActivity('double', 3);
  return { waitedMs: context.df.currentUtcDateTime.getTime() - start, value };
});

df.app.orchestration('race', function* (context) {
  const { timerMs, workMs, cancel } = context.df.getInput() as { timerMs: number; workMs: number; cancel: boolean };
  const timer = context.df.createTimer(new Date(context.df.currentUtcDateTime.getTime() + timerMs));
  const work = context.df.callActivity('wait', { ms: workMs, value: 'work' });
  const winner: df.Task = yield context.df.Task.any([work, timer]);
  if (winner === work && cancel) timer.cancel();
  const after: number = yield context.df.callActivity('double', 5);
  return { winner: winner === work ? 'work' : 'timer', after };
});

df.app.orchestration('events', function* (context) {
  const names = context.df.getInput() as string[];
  const received: unknown[] = [];
  for (const name of names) received.push((yield context.df.waitForExternalEvent(name)) as unknown);
  return received;
});

df.app.orchestration('gather', function* (context) {
  const names = context.df.getInput() as string[];
  return yield context.df.Task.all(names.map((name) => context.df.waitForExternalEvent(name)));
});

df.app.orchestration('counter', function* (context) {
  const { left, sum } = context.df.getInput() as { left: number; sum: number };
  const next: number = yield context.df.callActivity('echo', sum + left);
  context.df.setCustomStatus({ left });
  if (left > 0) {
    context.df.continueAsNew({ left: left - 1, sum: next });
    return undefined;
  }
  return next;
});

df.app.orchestration('continueWithText', function* (context) {
  if (context.df.getInput() !== 'first') return context.df.getInput();
  yield context.df.callActivity('noop', 0);
  context.df.continueAsNew('second');
  return undefined;
});

df.app.orchestration('continueWithEvents', function* (context) {
  const { round, ms } = context.df.getInput() as { round: number; ms: number };
  if (round === 0) {
    yield context.df.waitForExternalEvent('go');
    yield context.df.callActivity('wait', { ms, value: 0 });
    context.df.continueAsNew({ round: 1, ms });
    return undefined;
  }
  const timer = context.df.createTimer(new Date(context.df.currentUtcDateTime.getTime() + ms));
  const event = context.df.waitForExternalEvent('data');
  const winner: df.Task = yield context.df.Task.any([event, timer]);
  if (winner === event) timer.cancel();
  return winner === event ? event.result : 'lost';
});

df.app.orchestration('status', function* (context) {
  const { size } = context.df.getInput() as { size: number };
  context.df.setCustomStatus('x'.repeat(size));
  yield context.df.callActivity('noop', 1);
  return 'done';
});

df.app.orchestration('clock', function* (context) {
  const times: number[] = [];
  for (let index = 0; index < 3; index += 1) {
    times.push(context.df.currentUtcDateTime.getTime());
    yield context.df.callActivity('noop', index);
  }
  return { times, guid: context.df.newGuid('x'), isReplaying: context.df.isReplaying };
});

df.app.orchestration('unknownActivity', function* (context) {
  return yield context.df.callActivity('noSuchActivity', 1);
});

df.app.orchestration('unknownChild', function* (context) {
  return yield context.df.callSubOrchestrator('noSuchOrchestrator', 1);
});

df.app.orchestration('sharedTask', function* (context) {
  const { ms } = context.df.getInput() as { ms: number };
  const slow = context.df.callActivity('wait', { ms: ms * 3, value: 2 });
  const quick = context.df.callActivity('echo', 1);
  yield context.df.Task.any([slow, quick]);
  yield context.df.Task.any([slow, context.df.callActivity('wait', { ms: ms * 5, value: 3 })]);
  return yield context.df.callActivity('double', 3);
});

df.app.orchestration('allTwice', function* (context) {
  const tasks = [context.df.callActivity('noop', 1), context.df.callActivity('noop', 2)];
  yield context.df.Task.all(tasks);
  return yield context.df.Task.all(tasks);
});

df.app.orchestration('allEmpty', function* (context) {
  return yield context.df.Task.all([]);
});

df.app.orchestration('retryTimeout', function* (context) {
  const options = new df.RetryOptions(50, 10);
  options.retryTimeoutInMilliseconds = 120;
  return yield context.df.callActivityWithRetry('fail', options, 'never');
});

df.app.orchestration('earlyFailure', function* (context) {
  const tasks = [context.df.callActivity('fail', 'early'), context.df.callActivity('wait', { ms: 300, value: 'late' })];
  try {
    yield context.df.Task.all(tasks);
  } catch {
    yield context.df.callActivity('wait', { ms: 0, value: 'after' });
  }
  return 'done';
});

df.app.orchestration('entity', function* (context) {
  return yield context.df.callEntity(new df.EntityId('counter', 'one'), 'get');
});

df.app.orchestration('callHttp', function* (context) {
  return yield context.df.callHttp({ method: 'GET', url: 'http://127.0.0.1:9' });
});

/** Its activities depend on a setting: a restart with another value is a changed orchestrator. */
df.app.orchestration('changed', function* (context) {
  yield context.df.callActivity(process.env.SAMPLE_CHANGED === '1' ? 'double' : 'echo', 1);
  yield context.df.waitForExternalEvent('go');
  return 'done';
});

df.app.orchestration('version', function* (context) {
  const isChild = context.df.parentInstanceId !== null && context.df.parentInstanceId !== undefined;
  if (isChild) return context.df.version;
  return { own: context.df.version, child: (yield context.df.callSubOrchestrator('version', {})) as unknown };
});

/** Takes one event per execution: those that come with it must reach the next ones, in order. */
df.app.orchestration('drain', function* (context) {
  const { seen } = context.df.getInput() as { seen: number[] };
  const next: number = yield context.df.waitForExternalEvent('data');
  const all = [...seen, next];
  if (all.length < 4) {
    context.df.continueAsNew({ seen: all });
    return undefined;
  }
  return all;
});

df.app.orchestration('beyond', function* (context) {
  const options = new df.RetryOptions(1e300, 3);
  return yield context.df.callActivityWithRetry('fail', options, 'x');
});

df.app.orchestration('uncaughtEarly', function* (context) {
  const { ms } = context.df.getInput() as { ms: number };
  const tasks = [context.df.callActivity('fail', 'early'), context.df.callActivity('wait', { ms, value: 'late' })];
  return yield context.df.Task.all(tasks);
});

df.app.orchestration('retryBesideFailure', function* (context) {
  const { key } = context.df.getInput() as { key: string };
  const retried = context.df.callActivityWithRetry('failTimes', new df.RetryOptions(30, 2), {
    key,
    times: 1,
  });
  try {
    yield context.df.Task.all([context.df.callActivity('fail', 'at once'), retried]);
  } catch {
    return { foreign: (yield context.df.callActivity('double', 4)) as unknown };
  }
  return 'not reached';
});

df.app.orchestration('timestampKind', function* (context) {
  return typeof (context.df.getInput() as { Timestamp: unknown }).Timestamp;
});
