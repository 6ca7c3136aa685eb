/**
 * A small engine: runs the real orchestrators with the real steps over a service, the way the platform does. After every
 * episode the orchestrator is replayed from its recorded history and must ask for the very same things, so a hidden clock
 * or random number fails the test that runs it.
 */

import './functions-core.ts';
import type { OrchestrationContext } from 'durable-functions';
import { registeredSteps } from '../../../functions/activity-step.ts';
import '../../../functions/activities/assembly.ts';
import '../../../functions/activities/completion.ts';
import '../../../functions/activities/flush.ts';
import '../../../functions/activities/jobs.ts';
import { commitChunk, copyBlocks } from '../../../functions/orchestrators/commit-chunk.ts';
import { completeRun, verifyBlock } from '../../../functions/orchestrators/complete-run.ts';
import { dispatcher } from '../../../functions/orchestrators/dispatcher.ts';
import { flushRepository } from '../../../functions/orchestrators/flush-repository.ts';
import { rootGroup } from '../../../functions/root-groups.ts';
import type { StepAnswer } from '../../../functions/steps.ts';
import type { Service } from '../../../src/service/service.ts';

type Orchestrator = (context: OrchestrationContext) => Generator<unknown, unknown, unknown>;

const ORCHESTRATORS: Readonly<Record<string, Orchestrator>> = {
  dispatcher,
  completeRun,
  flushRepository,
  rootGroup,
  verifyBlock,
  commitChunk,
  copyBlocks,
};

type FakeTask =
  | { readonly task: 'activity' | 'orchestration'; readonly name: string; readonly input: unknown }
  | { readonly task: 'all'; readonly tasks: readonly FakeTask[] };

type Recorded =
  | { readonly asked: string; readonly result: unknown }
  | { readonly asked: string; readonly error: Error };

/** Occurs when a test stops the engine where it stands, as a crash does. */
export class EngineStopped extends Error {}

export interface StepCall {
  readonly name: string;
  readonly input: Record<string, unknown>;
}

export class Engine {
  service: Service;
  /** Called before each step; what it throws is the engine's failure of that step. */
  beforeStep: (call: StepCall) => void | Promise<void> = () => undefined;
  /** Called after each step was applied, before its result is recorded. */
  afterStep: (call: StepCall) => void | Promise<void> = () => undefined;
  /** True: this step is run twice, and the second answer counts, as when the first got lost. */
  runTwice: (call: StepCall) => boolean = () => false;
  /** Answers of steps whose real work is too large for a test. */
  readonly answers = new Map<string, (input: Record<string, unknown>) => StepAnswer<unknown>>();
  readonly logged: unknown[][] = [];
  readonly calls: StepCall[] = [];
  readonly childrenMax: { instance: string; children: number }[] = [];
  readonly #clock: { now(): Date };
  #executions = 0;

  constructor(service: Service, clock: { now(): Date }) {
    this.service = service;
    this.#clock = clock;
  }

  async dispatch(repository: string): Promise<void> {
    await this.run('dispatcher', { repository }, `dispatcher-${repository}`);
  }

  /** Runs an orchestration to its end, continuing as new as often as it asks for. */
  async run(name: string, input: unknown, instanceId: string): Promise<unknown> {
    let next: unknown = input;
    for (;;) {
      const { output, continuedWith } = await this.#execute(name, next, instanceId);
      if (continuedWith === undefined) {
        return output;
      }
      next = continuedWith;
    }
  }

  async #execute(
    name: string,
    input: unknown,
    instanceId: string,
  ): Promise<{ output: unknown; continuedWith: unknown }> {
    const orchestrator = ORCHESTRATORS[name];
    if (orchestrator === undefined) {
      throw new Error(`No orchestrator "${name}"`);
    }
    this.#executions += 1;
    // Every execution of one instance begins later than the one before.
    const began = new Date(this.#clock.now().getTime() + this.#executions);
    const history: Recorded[] = [];
    const first = newContext(input, instanceId, began);
    const generator = orchestrator(first.context);
    let step = generator.next();
    while (step.done !== true) {
      const task = step.value as FakeTask;
      const recorded = await this.#settle(task, `${instanceId}:${history.length}`);
      history.push(recorded);
      replay(orchestrator, newContext(input, instanceId, began).context, history);
      step = 'error' in recorded ? generator.throw(recorded.error) : generator.next(recorded.result);
    }
    this.childrenMax.push({ instance: instanceId, children: history.reduce((sum, each) => sum + childrenOf(each), 0) });
    return { output: throughJson(step.value), continuedWith: first.continuedWith() };
  }

  async #settle(task: FakeTask, childId: string): Promise<Recorded> {
    const asked = JSON.stringify(task);
    try {
      return { asked, result: await this.#resultOf(task, childId) };
    } catch (error) {
      if (error instanceof EngineStopped) {
        throw error;
      }
      return { asked, error: new Error(error instanceof Error ? error.message : String(error)) };
    }
  }

  async #resultOf(task: FakeTask, childId: string): Promise<unknown> {
    switch (task.task) {
      case 'activity':
        return throughJson(await this.#step(task.name, throughJson(task.input)));
      case 'orchestration':
        return await this.run(task.name, throughJson(task.input), childId);
      case 'all': {
        const settled = await Promise.allSettled(
          task.tasks.map(async (child, at) => await this.#resultOf(child, `${childId}:${at}`)),
        );
        const stopped = settled.find((each) => each.status === 'rejected' && each.reason instanceof EngineStopped);
        const failed = stopped ?? settled.find((each) => each.status === 'rejected');
        if (failed?.status === 'rejected') {
          throw failed.reason;
        }
        return settled.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
      }
    }
  }

  async #step(name: string, input: unknown): Promise<unknown> {
    const step = registeredSteps.get(name);
    if (step === undefined) {
      throw new Error(`No step "${name}"`);
    }
    const call = { name, input: input as Record<string, unknown> };
    const log = { log: (...parts: unknown[]) => this.#log(parts), error: (...parts: unknown[]) => this.#log(parts) };
    this.calls.push(call);
    await this.beforeStep(call);
    const answered = this.answers.get(name);
    if (answered !== undefined) {
      return answered(call.input);
    }
    if (this.runTwice(call)) {
      await step(this.service, throughJson(input), log);
    }
    const answer = await step(this.service, throughJson(input), log);
    await this.afterStep(call);
    return answer;
  }

  #log(parts: unknown[]): void {
    this.logged.push(parts);
  }
}

function newContext(
  input: unknown,
  instanceId: string,
  began: Date,
): { context: OrchestrationContext; continuedWith: () => unknown } {
  let continued: unknown;
  const df = {
    instanceId,
    currentUtcDateTime: began,
    getInput: () => throughJson(input),
    callActivity: (name: string, given: unknown): FakeTask => ({ task: 'activity', name, input: given }),
    callSubOrchestrator: (name: string, given: unknown): FakeTask => ({ task: 'orchestration', name, input: given }),
    continueAsNew: (next: unknown) => {
      continued = throughJson(next);
    },
    Task: {
      all: (tasks: readonly FakeTask[]): FakeTask => {
        if (tasks.length === 0) {
          throw new Error('Task.all of nothing');
        }
        return { task: 'all', tasks };
      },
    },
  };
  return { context: { df } as unknown as OrchestrationContext, continuedWith: () => continued };
}

/** Asks the orchestrator again, with the answers it was given: it must ask for the same, in the same order. */
function replay(orchestrator: Orchestrator, context: OrchestrationContext, history: readonly Recorded[]): void {
  const generator = orchestrator(context);
  let step = generator.next();
  for (const recorded of history) {
    if (step.done === true || JSON.stringify(step.value) !== recorded.asked) {
      throw new EngineStopped(`Not deterministic: ${recorded.asked} became ${JSON.stringify(step.value)}`);
    }
    step = 'error' in recorded ? generator.throw(recorded.error) : generator.next(recorded.result);
  }
}

function childrenOf(recorded: Recorded): number {
  const task = JSON.parse(recorded.asked) as FakeTask;
  return task.task === 'all' ? task.tasks.length : 1;
}

function throughJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
