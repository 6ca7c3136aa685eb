/** Every hour: flushes what has been pending for long, ends abandoned runs, drops old histories of orchestrations. */

import * as df from 'durable-functions';
import { OrchestrationRuntimeStatus } from 'durable-functions';
import { ORCHESTRATION_HISTORY_MS } from '../../src/limits.ts';
import { serviceOfProcess } from '../../src/service/composition.ts';
import { eachRepository } from '../each-repository.ts';
import { wakeRepository } from '../wake.ts';

/** Only these: purging an instance that runs would end it. */
const ENDED = [
  OrchestrationRuntimeStatus.Completed,
  OrchestrationRuntimeStatus.Failed,
  OrchestrationRuntimeStatus.Terminated,
];

df.app.client.timer('housekeeping', {
  schedule: '0 17 * * * *',
  handler: async (_timer, client, context) => {
    const service = await serviceOfProcess();
    await eachRepository(service, context, async (repository) => {
      const expired = await service.housekeeping.expireRuns(repository);
      if (expired > 0) {
        context.log(`Ended ${expired} abandoned runs of ${repository}.`);
      }
      if ((await service.housekeeping.queueFlushIfDue(repository)) !== undefined) {
        await wakeRepository(service, client, repository);
      }
    });
    await client.purgeInstanceHistoryBy({
      createdTimeFrom: new Date(0),
      createdTimeTo: new Date(service.clock.now().getTime() - ORCHESTRATION_HISTORY_MS),
      runtimeStatus: ENDED,
    });
  },
});
