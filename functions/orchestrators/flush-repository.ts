/** A job that only flushes: entries that have been pending for long, or that are many. */

import type { OrchestrationContext } from 'durable-functions';
import * as df from 'durable-functions';
import type { FlushEnding } from '../../src/service/flushing.ts';
import type { JobRef } from '../../src/service/job-steps.ts';
import { ORCHESTRATOR, type Orchestration, perform, problemOfFailure, RequestTally } from '../orchestration.ts';
import { flushAndSettle } from '../root-groups.ts';

export function* flushRepository(context: OrchestrationContext): Orchestration<null> {
  const job = context.df.getInput<JobRef>();
  const tally = new RequestTally();
  const ending = yield* flush(context, job, tally);
  return yield* perform(context, tally, 'finishFlush', { ...job, ending });
}

function* flush(context: OrchestrationContext, job: JobRef, tally: RequestTally): Orchestration<FlushEnding> {
  try {
    const { roots } = yield* perform(context, tally, 'planFlush', job);
    const { settled, ...written } = yield* flushAndSettle(context, job, tally, roots);
    return { succeeded: true, result: { entriesRecorded: settled, ...written } };
  } catch (error) {
    return { succeeded: false, error: problemOfFailure(error) };
  }
}

df.app.orchestration(ORCHESTRATOR.flushRepository, flushRepository);
