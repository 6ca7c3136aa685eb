/** Taking jobs and saying how far they are. */

import { step } from '../activity-step.ts';

step('takeNextJob', async (service, { repository, ...taker }) => await service.steps.takeNext(repository, taker));

step('takeJob', async (service, { repository, operationId, ...taker }) => {
  return await service.steps.take(repository, operationId, taker);
});

step('enterPhase', async (service, { phase, total, unit, ...job }) => {
  await service.steps.enterPhase(job, phase, { done: 0, total, unit });
  return null;
});
