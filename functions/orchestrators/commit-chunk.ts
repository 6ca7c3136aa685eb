/**
 * Assembling one large chunk from its staged blocks, beside the dispatcher: it touches nothing but that chunk. The blocks
 * are copied by a tree of sub-orchestrations, 16 children each, whatever their number.
 */

import type { OrchestrationContext } from 'durable-functions';
import * as df from 'durable-functions';
import type { Problem } from '../../src/errors.ts';
import { ORCHESTRATION_CHILDREN_MAX } from '../../src/limits.ts';
import type { AssemblyEnding } from '../../src/service/assembly.ts';
import type { JobRef } from '../../src/service/job-steps.ts';
import {
  engineProblem,
  ORCHESTRATOR,
  type Orchestration,
  perform,
  problemOfFailure,
  RequestTally,
  StepFailedError,
} from '../orchestration.ts';
import type { StepAnswer } from '../steps.ts';

export interface CommitChunkInput {
  readonly repository: string;
  readonly operationId: string;
}

interface CopyInput {
  readonly job: JobRef;
  /** Block numbers, `to` not included. */
  readonly from: number;
  readonly to: number;
}

interface CopyAnswer {
  readonly failure: Problem | null;
}

export function* commitChunk(context: OrchestrationContext): Orchestration<null> {
  const { repository, operationId } = context.df.getInput<CommitChunkInput>();
  const taker = { owner: context.df.instanceId, beganAtMs: context.df.currentUtcDateTime.getTime() };
  const tally = new RequestTally();
  const taken = yield* perform(context, tally, 'takeJob', { repository, operationId, ...taker });
  if (taken === null) {
    return null;
  }
  const job: JobRef = { repository, operationId, attempt: taken.attempt };
  const ending = yield* assemble(context, job, tally);
  return yield* perform(context, tally, 'finishAssembly', { ...job, ending });
}

function* assemble(context: OrchestrationContext, job: JobRef, tally: RequestTally): Orchestration<AssemblyEnding> {
  try {
    const { blocks } = yield* perform(context, tally, 'planAssembly', job);
    if (blocks > 0) {
      const input: CopyInput = { job, from: 0, to: blocks };
      const { failure } = (yield context.df.callSubOrchestrator(ORCHESTRATOR.copyBlocks, input)) as CopyAnswer;
      if (failure !== null) {
        throw new StepFailedError(failure);
      }
      yield* perform(context, tally, 'commitAssembly', { ...job, blocks });
    }
    return { succeeded: true };
  } catch (error) {
    return { succeeded: false, error: problemOfFailure(error) };
  }
}

export function* copyBlocks(context: OrchestrationContext): Orchestration<CopyAnswer> {
  const { job, from, to } = context.df.getInput<CopyInput>();
  const perChild = ORCHESTRATION_CHILDREN_MAX ** Math.max(0, levelsOf(to - from) - 1);
  const tasks = [];
  for (let at = from; at < to; at += perChild) {
    const child: CopyInput = { job, from: at, to: Math.min(to, at + perChild) };
    tasks.push(
      perChild === 1
        ? context.df.callActivity('copyBlock', { ...job, index: at })
        : context.df.callSubOrchestrator(ORCHESTRATOR.copyBlocks, child),
    );
  }
  try {
    const answers = (yield context.df.Task.all(tasks)) as (StepAnswer<null> | CopyAnswer)[];
    return { failure: answers.map(failureOf).find((failure) => failure !== null) ?? null };
  } catch {
    return { failure: engineProblem() };
  }
}

/** How many times 16 children have to be told apart to reach single blocks. */
function levelsOf(blocks: number): number {
  let levels = 0;
  for (let reach = 1; reach < blocks; reach *= ORCHESTRATION_CHILDREN_MAX) {
    levels += 1;
  }
  return levels;
}

function failureOf(answer: StepAnswer<null> | CopyAnswer): Problem | null {
  if ('failure' in answer) {
    return answer.failure;
  }
  return answer.ok ? null : answer.problem;
}

df.app.orchestration(ORCHESTRATOR.commitChunk, commitChunk);
df.app.orchestration(ORCHESTRATOR.copyBlocks, copyBlocks);
