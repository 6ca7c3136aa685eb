/** Timers are fired by the admin endpoint, which every host has; their schedules are tested with the local host. */

import { describe, expect, it } from 'vitest';
import { until } from './sample.ts';
import { checksKeys, useSample } from './target.ts';

const sample = useSample();

async function fire(name: string, key = sample.masterKey): Promise<number> {
  const headers = { 'x-functions-key': key, 'content-type': 'application/json' };
  return (await sample.fetch(`/admin/functions/${name}`, { method: 'POST', headers, body: '{}' })).status;
}

describe('a timer', () => {
  it('is fired by the admin endpoint, with the schedule its setting gives', async () => {
    const before = await sample.notes('{"timer":"everyHour"');
    expect(await fire('everyHour')).toBe(202);
    const notes = await until(
      () => sample.notes('{"timer":"everyHour"'),
      (found) => found.length > before.length,
      sample.ms(5000),
    );
    expect(JSON.parse(notes.at(-1) ?? '')).toMatchObject({
      isPastDue: false,
      status: { last: expect.any(String), next: expect.stringMatching(/T\d\d:00:00/), lastUpdated: expect.any(String) },
    });
    expect(await fire('noSuchTimer')).toBe(404);
  });

  it.runIf(checksKeys)('is fired by nobody without the master key', async () => {
    expect(await fire('everyHour', 'wrong')).toBe(401);
  });

  it('starts orchestrations through its client', async () => {
    await sample.client('purge', 'by-timer');
    expect(await fire('starter')).toBe(202);
    await until(
      () => sample.client('status', 'by-timer'),
      (answer) => answer.status === 200,
      sample.ms(5000),
    );
    expect((await sample.ended('by-timer')).output).toBe(8);
  });
});
