/**
 * From actions to decisions: the numbering that the library and the engine must agree on.
 *
 * The orchestrator's answer lists every action since the start of the execution, without numbers, while completions
 * are matched by number. So the engine runs the actions against the history exactly as the real extension does: one
 * top-level action at a time, the next only when that one has settled; each activity, sub-orchestration and timer
 * takes the next number when it is started. What the history does not hold yet is a new decision. Where the two sides
 * diverge by the library's doing, they diverge here in the same way.
 */

import type { Action, ChildAction, OrchestratorAnswer, RetryOptions } from './actions.ts';
import { type Decision, ReplayError, type ReplayOptions, type ReplayResult, type Standing } from './decisions.ts';
import { type EventRaised, EventType, type HistoryEvent } from './history.ts';
import { Step } from './step.ts';

export function replay(
  history: readonly HistoryEvent[],
  answer: OrchestratorAnswer,
  options: ReplayOptions,
): ReplayResult {
  const run = new Replay(answer.actions, options);
  for (const event of history) run.process(event);
  return run.result(answer.outcome);
}

class Replay {
  readonly #actions: readonly Action[];
  readonly #options: ReplayOptions;
  readonly #decisions = new Map<number, Decision>();
  readonly #open = new Map<number, Step>();
  readonly #waiters = new Map<string, Step[]>();
  readonly #buffered = new Map<string, number>();
  readonly #parked: HistoryEvent[] = [];
  readonly #unknownNames: string[] = [];
  #clock = 0;
  #nextNumber = 0;
  #nextAction = 0;
  #exhausted = false;
  #suspended = false;
  #terminated: string | undefined;
  #continueAsNew: { input: unknown; carriedOver: EventRaised[] } | undefined;

  constructor(actions: readonly Action[], options: ReplayOptions) {
    this.#actions = actions;
    this.#options = options;
  }

  process(event: HistoryEvent): void {
    if (event.EventType === EventType.OrchestratorStarted) {
      this.#clock = Date.parse(event.Timestamp);
    } else if (event.EventType === EventType.ExecutionTerminated) {
      this.#terminated ??= event.Input;
    } else if (event.EventType === EventType.ExecutionSuspended) {
      this.#suspended = true;
    } else if (event.EventType === EventType.ExecutionResumed) {
      this.#suspended = false;
      for (const parked of this.#parked.splice(0)) this.#apply(parked);
    } else if (this.#suspended) {
      this.#parked.push(event);
    } else {
      this.#apply(event);
    }
  }

  result(outcome: OrchestratorAnswer['outcome']): ReplayResult {
    const ended = this.#exhausted && outcome.kind !== 'waiting' && !this.#suspended;
    const decisions = this.#suspended || this.#terminated !== undefined ? [] : [...this.#decisions.values()];
    return {
      decisions: decisions.sort((left, right) => left.number - right.number),
      standing: this.#standing(outcome, ended && this.#open.size === 0),
      suspended: this.#suspended,
      openTasksAfterEnd: outcome.kind === 'waiting' ? 0 : this.#open.size,
      unknownNames: this.#unknownNames,
    };
  }

  #standing(outcome: OrchestratorAnswer['outcome'], finished: boolean): Standing {
    if (this.#terminated !== undefined) return { kind: 'terminated', reason: this.#terminated };
    if (!finished) return { kind: 'waiting' };
    if (outcome.kind === 'returned' && this.#continueAsNew !== undefined) {
      return { kind: 'continuedAsNew', ...this.#continueAsNew };
    }
    return outcome;
  }

  #apply(event: HistoryEvent): void {
    switch (event.EventType) {
      case EventType.ExecutionStarted:
        this.#runActions();
        break;
      case EventType.TaskScheduled:
        this.#confirm(event.EventId, 'activity', event.Name);
        break;
      case EventType.SubOrchestrationInstanceCreated:
        this.#confirm(event.EventId, 'child', event.Name);
        break;
      case EventType.TimerCreated:
        this.#confirm(event.EventId, 'timer', undefined);
        break;
      case EventType.TaskCompleted:
      case EventType.SubOrchestrationInstanceCompleted:
        this.#settle(event.TaskScheduledId, false);
        break;
      case EventType.TaskFailed:
      case EventType.SubOrchestrationInstanceFailed:
        this.#settle(event.TaskScheduledId, true);
        break;
      case EventType.TimerFired:
        this.#settle(event.TimerId, false);
        break;
      case EventType.EventRaised:
        this.#raise(event);
        break;
      default:
        break;
    }
  }

  /** One top-level action at a time; its successor waits until it has settled, with success or failure. */
  #runActions(): void {
    for (;;) {
      const action = this.#actions[this.#nextAction];
      if (action === undefined) {
        this.#exhausted = true;
        return;
      }
      this.#nextAction += 1;
      const step = this.#start(action);
      if (!step.settled) {
        step.onSettled(() => this.#runActions());
        return;
      }
    }
  }

  #start(action: Action): Step {
    switch (action.actionType) {
      case 0:
        return this.#startActivity(action.functionName, action.input);
      case 1:
        return this.#retry(() => this.#startActivity(action.functionName, action.input), action.retryOptions);
      case 2:
        return this.#startChild(action);
      case 3:
        return this.#retry(() => this.#startChild({ ...action, actionType: 2 }), action.retryOptions);
      case 4:
        this.#continueAsNew ??= { input: action.input, carriedOver: [] };
        return Step.settledNow();
      case 5:
        return this.#startTimer(Date.parse(action.fireAt), action.isCanceled);
      case 6:
        return this.#waitForEvent(action.externalEventName);
      case 11:
        return Step.any(action.compoundActions.map((inner) => this.#start(inner)));
      case 12:
        return Step.all(action.compoundActions.map((inner) => this.#start(inner)));
      default:
        throw new ReplayError(
          action.actionType === 8
            ? 'callHttp is not supported by the local host: make the request in an activity.'
            : 'Durable entities and locks are not supported by the local host: keep the state in storage.',
        );
    }
  }

  #startActivity(name: string, input: unknown): Step {
    if (!this.#options.isKnown('activity', name)) return this.#unknown(name);
    const number = this.#nextNumber++;
    this.#decisions.set(number, { kind: 'activity', number, name, input });
    return this.#track(number);
  }

  #startChild(action: ChildAction): Step {
    if (!this.#options.isKnown('child', action.functionName)) return this.#unknown(action.functionName);
    const number = this.#nextNumber++;
    const instanceId = action.instanceId || `${this.#options.executionId}:${number}`;
    const { functionName: name, input, version } = action;
    this.#decisions.set(number, { kind: 'child', number, name, input, instanceId, version: version ?? '' });
    return this.#track(number);
  }

  /** The real extension throws before it takes a number and swallows that: the library waits for a number in vain. */
  #unknown(name: string): Step {
    if (this.#options.strict) throw new ReplayError(`The function '${name}' doesn't exist: Azure would wait for ever.`);
    this.#unknownNames.push(name);
    const step = new Step();
    step.settle(true);
    return step;
  }

  /** A cancelled timer takes its number and its place in the history, but nothing waits for it. */
  #startTimer(fireAt: number, cancelled: boolean): Step {
    const step = new Step();
    const startLeg = (): void => {
      const isLong = fireAt - this.#clock > this.#options.shortTimerMaxMs;
      const legEnd = isLong ? this.#clock + this.#options.timerLegMs : fireAt;
      const number = this.#nextNumber++;
      this.#decisions.set(number, { kind: 'timer', number, fireAt: new Date(legEnd) });
      if (cancelled) {
        step.settle(false);
        return;
      }
      this.#track(number).onSettled(() => {
        if (this.#clock < fireAt) startLeg();
        else step.settle(false);
      });
    };
    startLeg();
    return step;
  }

  /** A timer between attempts, and one more after the last failure that fires at once: both sides count it. */
  #retry(start: () => Step, options: RetryOptions): Step {
    if (options.maxNumberOfAttempts < 1) throw new ReplayError('maxNumberOfAttempts must be at least 1.');
    const timeoutMs = options.retryTimeoutInMilliseconds ?? undefined;
    if (timeoutMs !== undefined && this.#options.strict) {
      throw new ReplayError('retryTimeoutInMilliseconds makes an instance wait for ever in Azure: do not set it.');
    }
    const result = new Step();
    const startedAt = this.#clock;
    const attempt = (count: number): void => {
      const task = start();
      task.onSettled(() => {
        const isTimeUp = timeoutMs !== undefined && this.#clock >= startedAt + timeoutMs;
        if (!task.failed || isTimeUp) {
          result.settle(task.failed);
          return;
        }
        const isLast = count + 1 >= options.maxNumberOfAttempts;
        const pause = this.#startPause(isLast ? 0 : retryDelayMs(options, count));
        pause.onSettled(() => {
          if (isLast) result.settle(true);
          else attempt(count + 1);
        });
      });
    };
    attempt(0);
    return result;
  }

  /** The wait between attempts is one timer however long it is. */
  #startPause(delayMs: number): Step {
    const number = this.#nextNumber++;
    this.#decisions.set(number, { kind: 'timer', number, fireAt: new Date(this.#clock + delayMs) });
    return this.#track(number);
  }

  #waitForEvent(name: string): Step {
    const key = name.toLowerCase();
    const waiting = this.#buffered.get(key) ?? 0;
    if (waiting > 0) {
      this.#buffered.set(key, waiting - 1);
      return Step.settledNow();
    }
    const step = new Step();
    this.#waiters.set(key, [...(this.#waiters.get(key) ?? []), step]);
    return step;
  }

  /** To the newest waiter, else kept for the next one. After continueAsNew events belong to the next execution. */
  #raise(event: EventRaised): void {
    if (this.#continueAsNew !== undefined) {
      this.#continueAsNew.carriedOver.push(event);
      return;
    }
    const key = event.Name.toLowerCase();
    const waiter = this.#waiters.get(key)?.pop();
    if (waiter === undefined) this.#buffered.set(key, (this.#buffered.get(key) ?? 0) + 1);
    else waiter.settle(false);
  }

  #track(number: number): Step {
    const step = new Step();
    this.#open.set(number, step);
    return step;
  }

  /** A completion without an open task is a duplicate, or belongs to a cancelled timer. */
  #settle(number: number, failed: boolean): void {
    const step = this.#open.get(number);
    this.#open.delete(number);
    step?.settle(failed);
  }

  #confirm(number: number, kind: Decision['kind'], name: string | undefined): void {
    const decision = this.#decisions.get(number);
    const made = decision === undefined || decision.kind === 'timer' ? undefined : decision.name;
    if (decision?.kind !== kind || made?.toLowerCase() !== name?.toLowerCase()) {
      const what = `${kind === 'child' ? 'sub-orchestration' : kind}${name === undefined ? '' : ` '${name}'`}`;
      const found = decision === undefined ? 'nothing' : `${decision.kind}${made === undefined ? '' : ` '${made}'`}`;
      throw new ReplayError(
        `Non-Deterministic workflow detected: an earlier execution scheduled ${what} with number ${number}, but the ` +
          `current replay scheduled ${found} there. Was the orchestrator changed while this instance was running?`,
      );
    }
    this.#decisions.delete(number);
  }
}

function retryDelayMs(options: RetryOptions, count: number): number {
  const delayMs = options.firstRetryIntervalInMilliseconds * (options.backoffCoefficient ?? 1) ** count;
  return Math.min(delayMs, options.maxRetryIntervalInMilliseconds ?? Number.POSITIVE_INFINITY);
}
