/** Assembling a large body from its staged blocks. */

import { step } from '../activity-step.ts';

step('planAssembly', async (service, job) => await service.assembly.plan(job));

step('copyBlock', async (service, { index, ...job }) => {
  await service.assembly.copyBlock(job, index);
  return null;
});

step('commitAssembly', async (service, { blocks, ...job }) => {
  await service.assembly.commit(job, blocks);
  return null;
});

step('finishAssembly', async (service, { ending, ...job }) => {
  await service.assembly.finish(job, ending);
  return null;
});
