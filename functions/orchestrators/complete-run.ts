/**
 * Completing a run: flush, settle, verify, publish, promote, in this order. Whatever fails on the way ends the job with its
 * problem; then nothing was published, and rows that were not settled stay pending.
 */

import type { OrchestrationContext } from 'durable-functions';
import * as df from 'durable-functions';
import type { Problem } from '../../src/errors.ts';
import { STEPS_PER_INSTANCE_MAX } from '../../src/limits.ts';
import type { CompletionEnding } from '../../src/service/completion.ts';
import type { JobRef } from '../../src/service/job-steps.ts';
import type { RequestCounts } from '../../src/service/metering.ts';
import {
  ORCHESTRATOR,
  type Orchestration,
  perform,
  problemOfFailure,
  RequestTally,
  StepFailedError,
} from '../orchestration.ts';
import { flushAndSettle } from '../root-groups.ts';

interface BlockInput {
  readonly job: JobRef;
  readonly fromSlice: number;
}

interface BlockAnswer {
  readonly done: boolean;
  readonly failure: Problem | null;
  readonly requests: RequestCounts;
}

export function* completeRun(context: OrchestrationContext): Orchestration<null> {
  const job = context.df.getInput<JobRef>();
  const tally = new RequestTally();
  const ending = yield* complete(context, job, tally);
  return yield* perform(context, tally, 'finishCompletion', { ...job, ending });
}

function* complete(context: OrchestrationContext, job: JobRef, tally: RequestTally): Orchestration<CompletionEnding> {
  try {
    const plan = yield* perform(context, tally, 'planCompletion', job);
    const { settled, ...written } = yield* flushAndSettle(context, job, tally, plan.roots);
    if (plan.publishes) {
      yield* verify(context, job, tally);
    }
    yield* enter(context, job, tally, 'publishing');
    const { snapshot, published } = yield* perform(context, tally, 'publishSnapshot', job);
    if (published) {
      yield* enter(context, job, tally, 'promoting');
      yield* perform(context, tally, 'promoteEpoch', job);
    }
    const storageRequests = tally.counts;
    const result = { snapshot, snapshotPublished: published, entriesRecorded: settled, ...written, storageRequests };
    return { succeeded: true, result };
  } catch (error) {
    return { succeeded: false, error: problemOfFailure(error) };
  }
}

function* enter(context: OrchestrationContext, job: JobRef, tally: RequestTally, phase: string): Orchestration<void> {
  yield* perform(context, tally, 'enterPhase', { ...job, phase, total: 1, unit: 'snapshot' });
}

/** Slice after slice; each sub-orchestration takes some of them, so that a large tree makes no long history. */
function* verify(context: OrchestrationContext, job: JobRef, tally: RequestTally): Orchestration<void> {
  yield* perform(context, tally, 'enterPhase', { ...job, phase: 'verifying', total: 0, unit: 'filetrees' });
  for (let fromSlice = 0; ; fromSlice += STEPS_PER_INSTANCE_MAX) {
    const input: BlockInput = { job, fromSlice };
    const answer = (yield context.df.callSubOrchestrator(ORCHESTRATOR.verifyBlock, input)) as BlockAnswer;
    tally.add(answer.requests);
    if (answer.failure !== null) {
      throw new StepFailedError(answer.failure);
    }
    if (answer.done) {
      return;
    }
  }
}

export function* verifyBlock(context: OrchestrationContext): Orchestration<BlockAnswer> {
  const { job, fromSlice } = context.df.getInput<BlockInput>();
  const tally = new RequestTally();
  try {
    for (let slice = fromSlice; slice < fromSlice + STEPS_PER_INSTANCE_MAX; slice++) {
      const { done } = yield* perform(context, tally, 'verifySlice', { ...job, slice });
      if (done) {
        return { done, failure: null, requests: tally.counts };
      }
    }
    return { done: false, failure: null, requests: tally.counts };
  } catch (error) {
    return { done: false, failure: problemOfFailure(error), requests: tally.counts };
  }
}

df.app.orchestration(ORCHESTRATOR.completeRun, completeRun);
df.app.orchestration(ORCHESTRATOR.verifyBlock, verifyBlock);
