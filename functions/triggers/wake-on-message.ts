/** A message says that a repository has a new job. */

import * as df from 'durable-functions';
import { z } from 'zod';
import { repositoryName } from '../../src/contract/schemas.ts';
import { serviceOfProcess } from '../../src/service/composition.ts';
import { JOBS_QUEUE } from '../../src/service/service.ts';
import { TRIGGER_CONNECTION } from '../../src/service/settings.ts';
import { wakeRepository } from '../wake.ts';

const wakeMessage = z.object({ repository: repositoryName });

df.app.client.storageQueue('wake-on-message', {
  queueName: JOBS_QUEUE,
  connection: TRIGGER_CONNECTION,
  handler: async (message: unknown, client, context) => {
    const parsed = wakeMessage.safeParse(message);
    if (!parsed.success) {
      context.warn('A message in the queue of jobs names no repository; it is dropped.');
      return;
    }
    await wakeRepository(await serviceOfProcess(), client, parsed.data.repository);
  },
});
