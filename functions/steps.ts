/**
 * The steps of the orchestrations, by the name of their activity, with what goes in and comes out. Payloads are references,
 * prefixes and counters: they pass through the task hub. Orchestrators and activities both build on this table, so a name
 * that only one of them knows does not compile (the engine would leave such a call hanging for ever).
 */

import type { Problem } from '../src/errors.ts';
import type { AssemblyEnding, AssemblyPlan } from '../src/service/assembly.ts';
import type { CompletionEnding, CompletionPlan, Published, VerifiedSlice } from '../src/service/completion.ts';
import type { FlushCounters, FlushEnding, RootStep, SettleResult } from '../src/service/flushing.ts';
import type { JobRef, TakenJob, Taker } from '../src/service/job-steps.ts';
import type { RequestCounts } from '../src/service/metering.ts';

interface Step<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}

export interface PhaseStart extends JobRef {
  readonly phase: string;
  readonly total: number;
  readonly unit: string;
}

export interface Steps {
  readonly takeNextJob: Step<Taker & { readonly repository: string }, TakenJob | null>;
  readonly takeJob: Step<Taker & { readonly repository: string; readonly operationId: string }, TakenJob | null>;
  readonly enterPhase: Step<PhaseStart, null>;
  readonly planFlush: Step<JobRef, { readonly roots: readonly string[] }>;
  readonly flushRoot: Step<RootStep, FlushCounters>;
  readonly bumpLayoutVersion: Step<JobRef, null>;
  readonly settleRoot: Step<RootStep, SettleResult>;
  readonly finishFlush: Step<JobRef & { readonly ending: FlushEnding }, null>;
  readonly planCompletion: Step<JobRef, CompletionPlan>;
  readonly verifySlice: Step<JobRef & { readonly slice: number }, VerifiedSlice>;
  readonly publishSnapshot: Step<JobRef, Published>;
  readonly promoteEpoch: Step<JobRef, null>;
  readonly finishCompletion: Step<JobRef & { readonly ending: CompletionEnding }, null>;
  readonly planAssembly: Step<JobRef, AssemblyPlan>;
  readonly copyBlock: Step<JobRef & { readonly index: number }, null>;
  readonly commitAssembly: Step<JobRef & { readonly blocks: number }, null>;
  readonly finishAssembly: Step<JobRef & { readonly ending: AssemblyEnding }, null>;
}

export type StepName = keyof Steps;
export type StepInput<N extends StepName> = Steps[N]['input'];
export type StepOutput<N extends StepName> = Steps[N]['output'];

/** A failure is an answer, not an exception: the engine's numbering goes wrong over exceptions in a fan-out. */
export type StepAnswer<Output> =
  | { readonly ok: true; readonly value: Output; readonly requests: RequestCounts }
  | { readonly ok: false; readonly problem: Problem; readonly requests: RequestCounts };
