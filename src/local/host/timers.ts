/**
 * Timer triggers. One timer never overlaps itself: its next time is computed when the handler has ended. When it was
 * last due is kept in the task hub's journal; a timer that was due while the host was down fires at once, as past due.
 * Schedules more frequent than once a minute are not monitored, as in Azure.
 */

import { TIMEOUT_MS_MAX } from '../../limits.ts';
import type { Hub } from './durable/hub.ts';
import type { ScheduleStatus } from './durable/hub-state.ts';
import type { Invoker } from './invocation.ts';
import type { HostLog } from './log.ts';
import { parseSchedule, type Schedule } from './ncrontab.ts';
import type { FunctionRegistry, RegisteredFunction } from './registry.ts';
import { replaceSettings } from './settings.ts';

const MONITORED_INTERVAL_MS_MIN = 60_000;
/** .NET's default time: the timer has not fired yet. */
const NEVER = '0001-01-01T00:00:00';

interface Timer {
  readonly target: RegisteredFunction;
  readonly expression: string;
  readonly schedule: Schedule;
  readonly isMonitored: boolean;
  running: Promise<void>;
  handle: NodeJS.Timeout | undefined;
}

export interface TimerParts {
  readonly registry: FunctionRegistry;
  readonly invoker: Invoker;
  readonly hub: Hub;
  readonly log: HostLog;
}

export class TimerTriggers {
  readonly #parts: TimerParts;
  readonly #timers = new Map<string, Timer>();
  #stopped = false;

  /** Schedules are checked here; nothing fires before `start`. */
  constructor(parts: TimerParts) {
    this.#parts = parts;
    for (const target of parts.registry.ofTrigger('timerTrigger')) {
      const expression = replaceSettings(String(target.trigger.schedule), process.env);
      const schedule = parseSchedule(expression);
      const first = schedule.next(new Date());
      const intervalMs = schedule.next(first).getTime() - first.getTime();
      const isMonitored = target.trigger.useMonitor !== false && intervalMs >= MONITORED_INTERVAL_MS_MIN;
      const timer = { target, expression, schedule, isMonitored, running: Promise.resolve(), handle: undefined };
      this.#timers.set(target.name.toLowerCase(), timer);
    }
  }

  start(): void {
    for (const timer of this.#timers.values()) {
      const now = Date.now();
      const status = this.#statusOf(timer);
      if (status !== undefined && Date.parse(status.next) <= now) this.#due(timer, true);
      else if (timer.target.trigger.runOnStartup === true) this.#due(timer, false);
      else this.#await(timer, status);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer.handle);
  }

  /** Fires a timer now, after its present run if there is one. Undefined when there is no such timer. */
  fireNow(name: string): Promise<void> | undefined {
    const timer = this.#timers.get(name.toLowerCase());
    return timer === undefined ? undefined : this.#fire(timer, false);
  }

  #statusOf(timer: Timer): ScheduleStatus | undefined {
    if (!timer.isMonitored) return undefined;
    const status = this.#parts.hub.state.timers.get(timer.target.name);
    return status?.expression === timer.expression ? status : undefined;
  }

  /** A new timer's next time is noted at once: if the host is down then, the timer is past due at the next start. */
  #await(timer: Timer, status: ScheduleStatus | undefined): void {
    const next = status === undefined ? timer.schedule.next(new Date()) : new Date(status.next);
    const { log } = this.#parts;
    if (status === undefined) {
      this.#remember(timer, null, next).catch((error: unknown) => log.error('The timer was not noted', error));
    }
    this.#arm(timer, next);
  }

  #arm(timer: Timer, at: Date): void {
    if (this.#stopped) return;
    clearTimeout(timer.handle);
    const waitMs = Math.min(Math.max(at.getTime() - Date.now(), 0), TIMEOUT_MS_MAX);
    timer.handle = setTimeout(() => {
      if (Date.now() < at.getTime()) this.#arm(timer, at);
      else this.#due(timer, false);
    }, waitMs);
  }

  #due(timer: Timer, isPastDue: boolean): void {
    const { log } = this.#parts;
    this.#fire(timer, isPastDue).catch((error: unknown) => log.error('The timer cannot go on', error));
  }

  #fire(timer: Timer, isPastDue: boolean): Promise<void> {
    clearTimeout(timer.handle);
    timer.running = timer.running.then(() => this.#run(timer, isPastDue));
    return timer.running;
  }

  async #run(timer: Timer, isPastDue: boolean): Promise<void> {
    if (this.#stopped) return;
    const { invoker, log } = this.#parts;
    const firedAt = new Date();
    const status = this.#statusOf(timer);
    const input = {
      Schedule: { AdjustForDST: true },
      ScheduleStatus: status && {
        Last: status.last ?? NEVER,
        Next: status.next,
        LastUpdated: status.lastUpdated,
      },
      IsPastDue: isPastDue,
    };
    try {
      const json = JSON.stringify({ ...input, ScheduleStatus: input.ScheduleStatus ?? null });
      await invoker.invoke(timer.target, { trigger: { json } });
    } catch (error) {
      log.error('The timer failed', error, { function: timer.target.name });
    }
    const next = timer.schedule.next(new Date());
    await this.#remember(timer, firedAt, next);
    this.#arm(timer, next);
  }

  async #remember(timer: Timer, last: Date | null, next: Date): Promise<void> {
    if (!timer.isMonitored) return;
    const status = {
      expression: timer.expression,
      last: last?.toISOString() ?? null,
      next: next.toISOString(),
      lastUpdated: new Date().toISOString(),
    };
    await this.#parts.hub.commit('timer', [{ op: 'timer', name: timer.target.name, status }]);
  }
}
