/**
 * The dispatcher of a repository: takes its oldest waiting job, runs it, and begins anew, until none waits. Every execution
 * reads the rows, the one after the last job too, so a job that was queued meanwhile is seen. One instance id for each
 * repository keeps this to one at a time; safety does not rest on it.
 */

import type { OrchestrationContext } from 'durable-functions';
import * as df from 'durable-functions';
import type { JobRef, TakenJob } from '../../src/service/job-steps.ts';
import { engineProblem, ORCHESTRATOR, type Orchestration, perform, RequestTally } from '../orchestration.ts';

export interface DispatcherInput {
  readonly repository: string;
}

export function* dispatcher(context: OrchestrationContext): Orchestration<null> {
  const { repository } = context.df.getInput<DispatcherInput>();
  const taker = { owner: context.df.instanceId, beganAtMs: context.df.currentUtcDateTime.getTime() };
  const taken = yield* perform(context, new RequestTally(), 'takeNextJob', { repository, ...taker });
  if (taken === null) {
    return null;
  }
  yield* run(context, taken);
  context.df.continueAsNew({ repository });
  return null;
}

/** A job ends its own row. Only when the engine gave up on its orchestration is it ended here. */
function* run(context: OrchestrationContext, { kind, ...job }: TakenJob): Orchestration<void> {
  const orchestrator = kind === 'complete' ? ORCHESTRATOR.completeRun : ORCHESTRATOR.flushRepository;
  try {
    yield context.df.callSubOrchestrator(orchestrator, job);
  } catch {
    const ending = { succeeded: false, error: engineProblem() } as const;
    yield* perform(context, new RequestTally(), finishStepOf(kind), { ...(job satisfies JobRef), ending });
  }
}

function finishStepOf(kind: TakenJob['kind']): 'finishCompletion' | 'finishFlush' {
  return kind === 'complete' ? 'finishCompletion' : 'finishFlush';
}

df.app.orchestration(ORCHESTRATOR.dispatcher, dispatcher);
