import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { QueueServiceClient } from '@azure/storage-queue';
import { describe, expect, inject, it } from 'vitest';
import { linesOf, startSample, temporaryDirectory, until } from './harness.ts';

const connectionString = inject('azuriteConnectionString');
const service = QueueServiceClient.fromConnectionString(connectionString);

async function startWithQueue(settings: Record<string, string> = {}): Promise<{
  queueName: string;
  received(): Promise<Record<string, unknown>[]>;
  send(message: unknown): Promise<void>;
  sendRaw(text: string): Promise<void>;
  create(): Promise<unknown>;
}> {
  const queueName = `work-${randomUUID()}`;
  const logFile = join(await temporaryDirectory(), 'log');
  await startSample({
    logFile,
    settings: { SAMPLE_QUEUES: '1', WORK_QUEUE: queueName, ...settings },
    secrets: { AzureWebJobsStorage: connectionString },
  });
  const queue = service.getQueueClient(queueName);
  const sendRaw = async (text: string): Promise<void> => void (await queue.sendMessage(text));
  return {
    queueName,
    create: () => queue.create(),
    sendRaw,
    send: (message) => sendRaw(Buffer.from(JSON.stringify(message)).toString('base64')),
    received: async () =>
      (await linesOf(logFile))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((note) => 'message' in note),
  };
}

async function messagesIn(name: string): Promise<string[]> {
  const queue = service.getQueueClient(name);
  if (!(await queue.exists())) return [];
  return (await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.map((message) => message.messageText);
}

describe('a queue trigger', () => {
  it('waits for its queue, gets each message decoded, and deletes it', async () => {
    const { create, send, received, queueName } = await startWithQueue();
    await create();
    for (let index = 0; index < 40; index += 1) await send({ index });
    const notes = await until(received, (found) => found.length === 40);
    expect(new Set(notes.map((note) => (note.message as { index: number }).index)).size).toBe(40);
    expect(notes[0]).toMatchObject({ dequeueCount: 1, hasId: true, insertionTime: expect.any(String) });
    await until(
      () => messagesIn(queueName),
      (left) => left.length === 0,
    );
  });

  it('moves a message to the poison queue after it has failed as often as host.json allows', async () => {
    const { create, send, received, queueName } = await startWithQueue();
    await create();
    await send({ fail: true });
    const poisoned = await until(
      () => messagesIn(`${queueName}-poison`),
      (found) => found.length === 1,
    );
    expect(JSON.parse(Buffer.from(poisoned[0] ?? '', 'base64').toString())).toEqual({ fail: true });
    expect((await received()).map((note) => note.dequeueCount)).toEqual([1, 2, 3]);
    await until(
      () => messagesIn(queueName),
      (left) => left.length === 0,
    );
  });

  it('treats a message that is not base64 as one that fails', async () => {
    const { create, sendRaw, received, queueName } = await startWithQueue();
    await create();
    await sendRaw('{"not":"base64"}');
    expect(
      await until(
        () => messagesIn(`${queueName}-poison`),
        (found) => found.length === 1,
      ),
    ).toEqual(['{"not":"base64"}']);
    expect(await received()).toEqual([]);
  });

  it('takes plain messages when host.json says so', async () => {
    const { create, sendRaw, received } = await startWithQueue({
      AzureFunctionsJobHost__extensions__queues__messageEncoding: 'none',
    });
    await create();
    await sendRaw('{"plain":true}');
    expect(await until(received, (found) => found.length === 1)).toMatchObject([{ message: { plain: true } }]);
  });
});
