/**
 * Flush and settle over the roots of a repository: 16 groups by the first hex digit, each a sub-orchestration of at most 16
 * activities, so that no history grows long. Settling begins only after every root has uploaded.
 */

import type { OrchestrationContext, Task } from 'durable-functions';
import { AriusError, type ErrorCode, type Problem } from '../src/errors.ts';
import { FLUSH_ROUNDS_MAX, ORCHESTRATION_CHILDREN_MAX } from '../src/limits.ts';
import type { FlushCounters, SettleResult } from '../src/service/flushing.ts';
import type { JobRef } from '../src/service/job-steps.ts';
import type { RequestCounts } from '../src/service/metering.ts';
import {
  engineProblem,
  ORCHESTRATOR,
  type Orchestration,
  perform,
  RequestTally,
  StepFailedError,
  slicesOf,
} from './orchestration.ts';
import type { StepAnswer } from './steps.ts';

export interface GroupInput {
  readonly job: JobRef;
  readonly step: 'flushRoot' | 'settleRoot';
  readonly round: number;
  readonly roots: readonly string[];
}

export interface GroupTotals {
  readonly settled: number;
  readonly shardsWritten: number;
  readonly shardsSplit: number;
  readonly indexBytesWritten: number;
}

export interface GroupAnswer extends GroupTotals {
  /** Roots that have to be flushed once more. */
  readonly again: readonly string[];
  readonly failures: readonly Problem[];
  readonly requests: RequestCounts;
}

/** Flushes and settles until no root asks for more. @throws StepFailedError */
export function* flushAndSettle(
  context: OrchestrationContext,
  job: JobRef,
  tally: RequestTally,
  allRoots: readonly string[],
): Orchestration<GroupTotals> {
  const totals = { settled: 0, shardsWritten: 0, shardsSplit: 0, indexBytesWritten: 0 };
  let roots = allRoots;
  for (let round = 0; roots.length > 0; round++) {
    if (round === FLUSH_ROUNDS_MAX) {
      throw new StepFailedError(notSettling(roots));
    }
    yield* overRoots(context, tally, totals, { job, step: 'flushRoot', round, roots });
    yield* perform(context, tally, 'bumpLayoutVersion', job);
    roots = yield* overRoots(context, tally, totals, { job, step: 'settleRoot', round, roots });
  }
  return totals;
}

/** The orchestrator of one group. Its answer says what failed; it never throws. */
export function* rootGroup(context: OrchestrationContext): Orchestration<GroupAnswer> {
  const { job, step, round, roots } = context.df.getInput<GroupInput>();
  const tasks = roots.map((root) => context.df.callActivity(step, { ...job, root, round }));
  try {
    const answers = (yield context.df.Task.all(tasks)) as StepAnswer<FlushCounters | SettleResult>[];
    return sumOf(roots, answers);
  } catch {
    return { ...sumOf([], []), failures: [engineProblem()] };
  }
}

function* overRoots(
  context: OrchestrationContext,
  tally: RequestTally,
  totals: { -readonly [Total in keyof GroupTotals]: number },
  input: GroupInput,
): Orchestration<readonly string[]> {
  const { job, step, roots } = input;
  const phase = step === 'flushRoot' ? 'flushing' : 'settling';
  yield* perform(context, tally, 'enterPhase', { ...job, phase, total: roots.length, unit: 'roots' });
  const tasks: Task[] = groupsOf(roots).map((group) =>
    context.df.callSubOrchestrator(ORCHESTRATOR.rootGroup, { ...input, roots: group }),
  );
  const answers = (yield context.df.Task.all(tasks)) as GroupAnswer[];
  for (const answer of answers) {
    tally.add(answer.requests);
    totals.settled += answer.settled;
    totals.shardsWritten += answer.shardsWritten;
    totals.shardsSplit += answer.shardsSplit;
    totals.indexBytesWritten += answer.indexBytesWritten;
  }
  const failures = answers.flatMap((answer) => answer.failures);
  if (failures.length > 0) {
    throw new StepFailedError(worstOf(failures));
  }
  return answers.flatMap((answer) => answer.again);
}

/** By first hex digit: at most 16 groups of at most 16 roots. */
function groupsOf(roots: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const root of roots) {
    const digit = root.slice(0, 1);
    groups.set(digit, [...(groups.get(digit) ?? []), root]);
  }
  return [...groups.values()].flatMap((group) => slicesOf(group, ORCHESTRATION_CHILDREN_MAX));
}

function sumOf(roots: readonly string[], answers: readonly StepAnswer<FlushCounters | SettleResult>[]): GroupAnswer {
  const tally = new RequestTally();
  const sum = { settled: 0, shardsWritten: 0, shardsSplit: 0, indexBytesWritten: 0 };
  const again: string[] = [];
  const failures: Problem[] = [];
  answers.forEach((answer, at) => {
    tally.add(answer.requests);
    const root = roots[at];
    if (!answer.ok) {
      failures.push(answer.problem);
    } else if ('settled' in answer.value) {
      sum.settled += answer.value.settled;
      if (answer.value.flushAgain && root !== undefined) {
        again.push(root);
      }
    } else {
      sum.shardsWritten += answer.value.shardsWritten;
      sum.shardsSplit += answer.value.shardsSplit;
      sum.indexBytesWritten += answer.value.bytesWritten;
    }
  });
  return { ...sum, again, failures, requests: tally.counts };
}

/** What a person has to mend comes before what mends itself when it is tried again. */
const WORST_FIRST: readonly ErrorCode[] = ['chunk-index-corrupt', 'repair-incomplete', 'internal'];

function worstOf(failures: readonly Problem[]): Problem {
  for (const code of WORST_FIRST) {
    const found = failures.find((failure) => failure.code === code);
    if (found !== undefined) {
      return found;
    }
  }
  return notFlushed(`${failures.length} roots could not be flushed; the first: ${failures[0]?.detail ?? ''}`);
}

function notSettling(roots: readonly string[]): Problem {
  return notFlushed(`The roots ${roots.slice(0, 8).join(', ')} kept changing in ${FLUSH_ROUNDS_MAX} rounds.`);
}

function notFlushed(detail: string): Problem {
  return new AriusError(
    'pending-not-flushed',
    detail,
    'Nothing is lost, and no snapshot was published: archive again to go on.',
  ).toProblem();
}
