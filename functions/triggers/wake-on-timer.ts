/** Every minute: wakes whatever waits, so that a lost message costs a minute and no more. */

import * as df from 'durable-functions';
import { serviceOfProcess } from '../../src/service/composition.ts';
import { eachRepository } from '../each-repository.ts';
import { wakeRepository } from '../wake.ts';

df.app.client.timer('wake-on-timer', {
  schedule: '0 * * * * *',
  handler: async (_timer, client, context) => {
    const service = await serviceOfProcess();
    await eachRepository(service, context, async (repository) => await wakeRepository(service, client, repository));
  },
});
