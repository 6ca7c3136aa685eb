import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { QueueServiceClient } from '@azure/storage-queue';
import { describe, expect, inject, it } from 'vitest';
import { until } from '../../conformance/host/sample.ts';
import { linesOf, startSample, temporaryDirectory } from './harness.ts';

const connectionString = inject('azuriteConnectionString');
const service = QueueServiceClient.fromConnectionString(connectionString);

async function startWithQueue(settings: Record<string, string> = {}): Promise<{
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
    create: () => queue.create(),
    sendRaw,
    send: (message) => sendRaw(Buffer.from(JSON.stringify(message)).toString('base64')),
    received: async () =>
      (await linesOf(logFile))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((note) => 'message' in note),
  };
}

describe('a queue trigger', () => {
  it('waits for its queue', async () => {
    const { create, send, received } = await startWithQueue();
    await create();
    for (let index = 0; index < 3; index += 1) await send({ index });
    const notes = await until(received, (found) => found.length === 3);
    expect(notes.map((note) => (note.message as { index: number }).index).sort()).toEqual([0, 1, 2]);
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
