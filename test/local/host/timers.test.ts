import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../conformance/host/sample.ts';
import { type LocalSample, linesOf, startSample, temporaryDirectory } from './harness.ts';

type Note = Record<string, unknown> & { status?: { last: string; next: string } | null };

async function notes(file: string, member: string): Promise<Note[]> {
  return (await linesOf(file)).map((line) => JSON.parse(line) as Note).filter((note) => member in note);
}

async function fire(sample: LocalSample, name: string, key = sample.host.masterKey): Promise<number> {
  const headers = { 'x-functions-key': key, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: '{}' };
  return (await sample.fetch(`/admin/functions/${name}?wait=true`, init)).status;
}

describe('a timer', () => {
  it('fires by its schedule and never overlaps itself', async () => {
    const logFile = join(await temporaryDirectory(), 'log');
    await startSample({ logFile });
    await until(
      () => notes(logFile, 'quick'),
      (found) => found.length >= 6,
    );
    const order = (await notes(logFile, 'quick')).slice(0, 6).map((note) => note.quick);
    expect(order).toEqual(['begin', 'end', 'begin', 'end', 'begin', 'end']);
  });

  it('can be fired now, with the master key', async () => {
    const logFile = join(await temporaryDirectory(), 'log');
    const sample = await startSample({ logFile });
    expect(await fire(sample, 'everyHour', sample.host.functionKey)).toBe(401);
    expect(await fire(sample, 'everyHour')).toBe(202);
    expect(await fire(sample, 'noSuchTimer')).toBe(404);
    const status = {
      last: '0001-01-01T00:00:00',
      next: expect.stringMatching(/:00:00/),
      lastUpdated: expect.any(String),
    };
    expect(await notes(logFile, 'timer')).toEqual([{ timer: 'everyHour', isPastDue: false, status }]);
  });

  it('remembers when it was last due, over a restart', async () => {
    const stateDirectory = await temporaryDirectory();
    const logFile = join(stateDirectory, 'log');
    const first = await startSample({ stateDirectory, logFile });
    await fire(first, 'everyHour');
    await first.host.stop();
    const second = await startSample({ stateDirectory, logFile });
    await fire(second, 'everyHour');
    const [, note] = await notes(logFile, 'timer');
    expect(note).toMatchObject({
      isPastDue: false,
      status: { last: expect.any(String), next: expect.stringMatching(/:00:00/) },
    });
  });

  it('that was due while the host was down fires at once, as past due', async () => {
    const stateDirectory = await temporaryDirectory();
    const logFile = join(stateDirectory, 'log');
    const first = await startSample({ stateDirectory, logFile });
    await first.host.stop();
    const journal = join(stateDirectory, 'journal.jsonl');
    const text = await readFile(journal, 'utf8');
    await writeFile(journal, text.replace(/("next":")[^"]+/g, '$12020-01-01T00:00:00.000Z'));
    const second = await startSample({ stateDirectory, logFile });
    await until(
      () => notes(logFile, 'timer'),
      (found) => found.length === 1 && found[0]?.isPastDue === true,
    );
    await fire(second, 'everyHour');
    expect((await notes(logFile, 'timer'))[1]).toMatchObject({ isPastDue: false });
  });

  it('with another schedule than before forgets when it was due', async () => {
    const stateDirectory = await temporaryDirectory();
    const logFile = join(stateDirectory, 'log');
    const first = await startSample({ stateDirectory, logFile });
    await fire(first, 'everyHour');
    await first.host.stop();
    const second = await startSample({ stateDirectory, logFile, settings: { EVERY_HOUR: '0 30 * * * *' } });
    await fire(second, 'everyHour');
    expect((await notes(logFile, 'timer'))[1]).toMatchObject({
      isPastDue: false,
      status: { last: '0001-01-01T00:00:00', next: expect.stringMatching(/:30:00/) },
    });
  });
});
