/**
 * What the orchestrators share. All of it is deterministic: no clock but the context's, no randomness, no input or output.
 * A task is put into one compound task only, fan-outs never use the engine's retries, and failures come back as values:
 * both sides of the engine number tasks on their own, and only this keeps their numbers equal.
 */

import type { OrchestrationContext, Task } from 'durable-functions';
import { AriusError, type Problem } from '../src/errors.ts';
import type { RequestCounts } from '../src/service/metering.ts';
import type { StepAnswer, StepInput, StepName, StepOutput } from './steps.ts';

export type Orchestration<T> = Generator<Task, T, unknown>;

export const ORCHESTRATOR = {
  dispatcher: 'dispatcher',
  completeRun: 'completeRun',
  flushRepository: 'flushRepository',
  rootGroup: 'rootGroup',
  verifyBlock: 'verifyBlock',
  commitChunk: 'commitChunk',
  copyBlocks: 'copyBlocks',
} as const;

/** Occurs when a step answered with a problem; ends the job it belongs to. */
export class StepFailedError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = 'StepFailedError';
    this.problem = problem;
  }
}

/** Storage requests of all steps of a job. */
export class RequestTally {
  readonly counts: Record<string, number> = {};

  add(requests: RequestCounts): void {
    for (const [requestClass, count] of Object.entries(requests)) {
      this.counts[requestClass] = (this.counts[requestClass] ?? 0) + count;
    }
  }
}

/** @throws StepFailedError */
export function* perform<N extends StepName>(
  context: OrchestrationContext,
  tally: RequestTally,
  name: N,
  input: StepInput<N>,
): Orchestration<StepOutput<N>> {
  const answer = (yield context.df.callActivity(name, input)) as StepAnswer<StepOutput<N>>;
  tally.add(answer.requests);
  if (!answer.ok) {
    throw new StepFailedError(answer.problem);
  }
  return answer.value;
}

/** What ended a job: the problem a step named, or the engine's own failure of a step (a crash, a timeout). */
export function problemOfFailure(error: unknown): Problem {
  if (error instanceof StepFailedError) {
    return error.problem;
  }
  return engineProblem();
}

/** The engine's message stays in its history: it may hold anything. */
export function engineProblem(): Problem {
  return new AriusError(
    'internal',
    'A step of the operation was ended by the platform.',
    'Nothing is lost. Archive again; if it stays, look into the log of the service.',
  ).toProblem();
}

/** Equal parts of at most `size`, in order. */
export function slicesOf<T>(items: readonly T[], size: number): T[][] {
  const slices: T[][] = [];
  for (let at = 0; at < items.length; at += size) {
    slices.push(items.slice(at, at + size));
  }
  return slices;
}
