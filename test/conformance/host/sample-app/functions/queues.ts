/** Queue functions, only when the test has a storage account; HTTP functions send to the queue and look into it. */

import { app, type InvocationContext } from '@azure/functions';
import { QueueServiceClient } from '@azure/storage-queue';
import { note } from '../support/notes.ts';

if (process.env.SAMPLE_QUEUES === '1') {
  const queueOf = (suffix: string) =>
    QueueServiceClient.fromConnectionString(process.env.AzureWebJobsStorage ?? '').getQueueClient(
      `${process.env.WORK_QUEUE}${suffix}`,
    );

  app.storageQueue('work', {
    queueName: '%WORK_QUEUE%',
    connection: 'AzureWebJobsStorage',
    handler: (message: unknown, context: InvocationContext) => {
      const { dequeueCount, id, insertionTime } = context.triggerMetadata ?? {};
      note(JSON.stringify({ message, dequeueCount, hasId: typeof id === 'string', insertionTime }));
      if ((message as { fail?: boolean }).fail) throw new Error('the message fails');
    },
  });

  /** The body is put into the queue as it is. */
  app.http('send', {
    methods: ['POST'],
    authLevel: 'anonymous',
    handler: async (request) => {
      await queueOf('').createIfNotExists();
      await queueOf('').sendMessage(await request.text());
      return { status: 202 };
    },
  });

  app.http('waiting', {
    methods: ['GET'],
    authLevel: 'anonymous',
    handler: async (request) => {
      const queue = queueOf(request.query.get('of') === 'poison' ? '-poison' : '');
      if (!(await queue.exists())) return { jsonBody: [] };
      const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
      return { jsonBody: peekedMessageItems.map((message) => message.messageText) };
    },
  });
}
