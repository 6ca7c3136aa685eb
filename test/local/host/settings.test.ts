import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type HostConfig, readHostConfig, replaceSettings } from '../../../src/local/host/settings.ts';
import { TestHooks } from '../../../src/local/host/test-hooks.ts';
import { formatTimeSpan, parseTimeSpan } from '../../../src/local/host/time-span.ts';
import { temporaryDirectory } from './harness.ts';

async function read(hostJson: unknown, settings: Record<string, string> = {}): Promise<HostConfig> {
  const directory = await temporaryDirectory();
  await writeFile(join(directory, 'host.json'), typeof hostJson === 'string' ? hostJson : JSON.stringify(hostJson));
  return readHostConfig(directory, settings);
}

describe('host.json', () => {
  it('has the defaults of the real host', async () => {
    expect(await read({ version: '2.0' })).toMatchObject({
      routePrefix: 'api',
      functionTimeoutMs: 30 * 60_000,
      queues: {
        batchSize: 16,
        newBatchThreshold: 8,
        maxPollingIntervalMs: 60_000,
        maxDequeueCount: 5,
        visibilityTimeoutMs: 0,
        base64: true,
      },
      durable: { hubName: 'TestHubName' },
    });
  });

  it('sets what it names, and settings override it', async () => {
    const json = {
      functionTimeout: '00:10:00',
      extensions: {
        http: { routePrefix: '' },
        queues: { batchSize: 4, maxPollingInterval: '00:00:02' },
        durableTask: { hubName: '%HUB%', maxConcurrentActivityFunctions: 7 },
      },
    };
    const settings = { HUB: 'MyHub', AzureFunctionsJobHost__extensions__queues__batchSize: '5' };
    expect(await read(json, settings)).toMatchObject({
      routePrefix: '',
      functionTimeoutMs: 600_000,
      queues: { batchSize: 5, newBatchThreshold: 2, maxPollingIntervalMs: 2000 },
      durable: { hubName: 'MyHub', maxConcurrentActivityFunctions: 7 },
    });
  });

  it('may have no function timeout', async () => {
    expect((await read({ functionTimeout: '-1' })).functionTimeoutMs).toBe(2 ** 31 - 1);
  });

  it('takes the hub name from the site name when it names none', async () => {
    expect((await read({}, { WEBSITE_SITE_NAME: 'site' })).durable.hubName).toBe('site');
  });

  it.each([
    [{ functionTimeout: 5 }, 'functionTimeout must be a time'],
    [{ extensions: { queues: { batchSize: 33 } } }, 'batchSize must be a whole number from 1 to 32'],
    [{ extensions: { queues: { messageEncoding: 'utf8' } } }, 'messageEncoding must be one of base64, none'],
    [{ extensions: { durableTask: { hubName: 7 } } }, 'hubName must be a text'],
    [{ extensions: { durableTask: { hubName: '%NOPE%' } } }, 'there is no setting NOPE'],
    ['{', 'cannot be read'],
  ])('refuses %j', async (json, message) => {
    await expect(read(json)).rejects.toThrow(message);
  });
});

describe('%SETTING%', () => {
  it('is replaced wherever it is in a text', () => {
    expect(replaceSettings('a-%X%-%Y%', { X: '1', Y: '2' })).toBe('a-1-2');
    expect(replaceSettings('plain', {})).toBe('plain');
  });
});

describe('time spans', () => {
  it.each([
    ['00:00:30', 30_000],
    ['01:02:03.004', 3_723_004],
    ['3.00:00:00', 3 * 86_400_000],
    ['00:05', 300_000],
  ])('%s', (text, milliseconds) => {
    expect(parseTimeSpan(text)).toBe(milliseconds);
    expect(parseTimeSpan(formatTimeSpan(milliseconds))).toBe(milliseconds);
  });

  it.each(['', '5', '24:00:00', '00:60:00', '0 * * * *', '-00:00:01'])('not "%s"', (text) => {
    expect(parseTimeSpan(text)).toBeUndefined();
  });
});

describe('test hooks', () => {
  it.each([
    { LOCAL_HOST_CRASH: 'soon' },
    { LOCAL_HOST_CRASH: 'after:x' },
    { LOCAL_HOST_DUPLICATE_ACTIVITIES: 'often' },
  ])('refuse %j', (settings) => {
    expect(() => new TestHooks(settings)).toThrow('LOCAL_HOST_');
  });

  it('are off by default', () => {
    const hooks = new TestHooks({});
    expect([hooks.strict, hooks.usesChance, hooks.runsTwice(), hooks.messageDelayMs(), hooks.racyStartsMs]).toEqual([
      false,
      false,
      false,
      0,
      0,
    ]);
  });
});
