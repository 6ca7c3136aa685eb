/** Queue functions, only when the test has a storage emulator. */

import { appendFileSync } from 'node:fs';
import { app, type InvocationContext } from '@azure/functions';

if (process.env.SAMPLE_QUEUES === '1') {
  app.storageQueue('work', {
    queueName: '%WORK_QUEUE%',
    connection: 'AzureWebJobsStorage',
    handler: (message: unknown, context: InvocationContext) => {
      const { dequeueCount, id, insertionTime } = context.triggerMetadata ?? {};
      const record = { message, dequeueCount, hasId: typeof id === 'string', insertionTime };
      appendFileSync(process.env.SAMPLE_LOG ?? '', `${JSON.stringify(record)}\n`);
      if ((message as { fail?: boolean }).fail) throw new Error('the message fails');
    },
  });
}
