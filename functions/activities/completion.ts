/** From flushed entries to a published snapshot. */

import { step } from '../activity-step.ts';

step('planCompletion', async (service, job) => await service.completion.plan(job));

step('verifySlice', async (service, { slice, ...job }) => await service.completion.verify(job, slice));

step('publishSnapshot', async (service, job) => await service.completion.publish(job));

step('promoteEpoch', async (service, job) => {
  await service.completion.promote(job);
  return null;
});

step('finishCompletion', async (service, { ending, ...job }, log) => {
  log.log('Run ended', { ...job, ...ending });
  await service.completion.finish(job, ending);
  return null;
});
