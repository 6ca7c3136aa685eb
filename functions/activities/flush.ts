/** From pending entries to shards. */

import { step } from '../activity-step.ts';

step('planFlush', async (service, job) => ({ roots: await service.flushing.roots(job) }));

step('flushRoot', async (service, input) => await service.flushing.flushRoot(input));

step('bumpLayoutVersion', async (service, job) => {
  await service.flushing.bumpLayoutVersion(job);
  return null;
});

step('settleRoot', async (service, input) => await service.flushing.settleRoot(input));

step('finishFlush', async (service, { ending, ...job }, log) => {
  log.log('Flush ended', { ...job, ...ending });
  await service.flushing.finish(job, ending);
  return null;
});
