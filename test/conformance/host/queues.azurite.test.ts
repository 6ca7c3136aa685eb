/** The queue is reached through functions of the sample app, so that this runs against any host. */

import { randomUUID } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import { until } from './sample.ts';
import { useSample } from './target.ts';

const sample = useSample({
  settings: { SAMPLE_QUEUES: '1', WORK_QUEUE: `sample-${randomUUID()}` },
  storage: inject('azuriteConnectionString'),
});

interface Received {
  readonly message: unknown;
  readonly dequeueCount: number;
  readonly hasId: boolean;
  readonly insertionTime: unknown;
}

async function send(text: string): Promise<void> {
  expect((await sample.fetch('/api/send', { method: 'POST', body: text })).status).toBe(202);
}

function encoded(message: unknown): string {
  return Buffer.from(JSON.stringify(message)).toString('base64');
}

/** What the function has got of the messages that hold this text. */
async function received(text: string): Promise<Received[]> {
  const lines = await sample.notes('{"message":');
  return lines.filter((line) => line.includes(text)).map((line) => JSON.parse(line) as Received);
}

async function waiting(of: 'work' | 'poison'): Promise<string[]> {
  return (await (await sample.fetch(`/api/waiting?of=${of}`)).json()) as string[];
}

describe('a queue trigger', () => {
  it('gets each message of the queue its setting names, decoded, and deletes it', async () => {
    const key = sample.id('many');
    for (let index = 0; index < 40; index += 1) await send(encoded({ key, index }));
    const notes = await until(
      () => received(key),
      (found) => found.length >= 40,
      sample.ms(15_000),
    );
    expect(new Set(notes.map(({ message }) => (message as { index: number }).index)).size).toBe(40);
    expect(notes[0]).toMatchObject({ dequeueCount: 1, hasId: true, insertionTime: expect.any(String) });
    await until(
      () => waiting('work'),
      (left) => left.length === 0,
      sample.ms(5000),
    );
  });

  it('moves a message to the poison queue after it has failed as often as host.json allows', async () => {
    const key = sample.id('poison');
    await send(encoded({ fail: true, key }));
    const ofThis = (texts: string[]): unknown[] =>
      texts.map((text) => Buffer.from(text, 'base64').toString()).filter((text) => text.includes(key));
    const poisoned = await until(
      () => waiting('poison').then(ofThis),
      (found) => found.length === 1,
      sample.ms(15_000),
    );
    expect(poisoned).toEqual([JSON.stringify({ fail: true, key })]);
    expect((await received(key)).map((note) => note.dequeueCount)).toEqual([1, 2, 3]);
  });

  it('treats a message that is not base64 as one that fails', async () => {
    const text = JSON.stringify({ 'not-base64': sample.id('plain') });
    await send(text);
    await until(
      () => waiting('poison'),
      (found) => found.includes(text),
      sample.ms(15_000),
    );
    expect(await received(sample.id('plain'))).toEqual([]);
  });
});
