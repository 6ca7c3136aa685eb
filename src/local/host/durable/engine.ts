/**
 * Runs what the task hub holds: one episode of an instance at a time, as many instances and activities side by side as
 * host.json allows. Work starts only after the transaction that asks for it has reached the journal, so a restart
 * finds everything and runs activities that were in flight once more (at least once, as in Azure).
 */

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { TIMEOUT_MS_MAX } from '../../../limits.ts';
import type { DurableConfig } from '../settings.ts';
import type { TestHooks } from '../test-hooks.ts';
import { type ActivityParts, runActivity } from './activity.ts';
import { type Episode, type EpisodeParts, failedResult, runEpisode } from './episode.ts';
import { recordExecution } from './execution-record.ts';
import { EventType, type HistoryEvent } from './history.ts';
import type { CommitKind, Hub } from './hub.ts';
import {
  type ActivityTask,
  type InstanceRecord,
  type InstanceRow,
  isFinished,
  type Message,
  type Operation,
  type RuntimeStatus,
} from './hub-state.ts';
import { newInstance, startEvent, type TransactionParts, transactionOf } from './transaction.ts';
import { mayRun } from './version-match.ts';

export type StartResult =
  | { readonly kind: 'started'; readonly instanceId: string }
  | { readonly kind: 'exists'; readonly status: RuntimeStatus };

export interface EngineOptions extends ActivityParts {
  readonly hub: Hub;
  readonly config: DurableConfig;
  readonly hooks: TestHooks;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #hub: Hub;
  readonly #hooks: TestHooks;
  readonly #episodes: EpisodeParts;
  readonly #transactions: TransactionParts;
  readonly #activityLimit: ReturnType<typeof pLimit>;
  readonly #episodeLimit: ReturnType<typeof pLimit>;
  readonly #active = new Set<string>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #stopped = false;

  constructor(options: EngineOptions) {
    const { registry, invoker, hub, config, hooks } = options;
    this.#options = options;
    this.#hub = hub;
    this.#hooks = hooks;
    const { strict, shortTimerMaxMs, timerLegMs } = hooks;
    const isKnown = (kind: 'activity' | 'child', name: string): boolean =>
      this.#isFunction(name, kind === 'activity' ? 'activityTrigger' : 'orchestrationTrigger');
    this.#episodes = { registry, invoker, replayOptions: { strict, shortTimerMaxMs, timerLegMs, isKnown } };
    const { defaultVersion } = config;
    this.#transactions = {
      state: hub.state,
      strict,
      defaultVersion,
      newMessage: (...parts): Message => this.#newMessage(...parts),
    };
    this.#activityLimit = pLimit(config.maxConcurrentActivityFunctions);
    this.#episodeLimit = pLimit(config.maxConcurrentOrchestratorFunctions);
  }

  /** Takes up what an earlier process left. */
  resume(): void {
    for (const task of this.#hub.state.activities.values()) this.#runActivity(task);
    for (const [instanceId, record] of this.#hub.state.instances) {
      for (const message of record.inbox) this.#wakeFor(message);
      this.#poke(instanceId);
    }
  }

  /** Starts nothing new; work that was not finished is found in the journal by the next process. */
  stop(): void {
    this.#stopped = true;
    this.#activityLimit.clearQueue();
    this.#episodeLimit.clearQueue();
    for (const timer of this.#timers) clearTimeout(timer);
  }

  get state(): Hub['state'] {
    return this.#hub.state;
  }

  isOrchestrator(name: string): boolean {
    return this.#isFunction(name, 'orchestrationTrigger');
  }

  /** Atomic, unlike the real engine's; the racy mode of the test hooks loses one of two starts as that does. */
  async start(name: string, instanceId: string | undefined, input: string, version: string): Promise<StartResult> {
    const id = instanceId ?? randomUUID().replaceAll('-', '');
    const existing = this.state.instances.get(id)?.row;
    if (existing !== undefined && !isFinished(existing.runtimeStatus)) {
      const isRace = Date.now() - Date.parse(existing.createdTime) < this.#hooks.racyStartsMs;
      return isRace ? { kind: 'started', instanceId: id } : { kind: 'exists', status: existing.runtimeStatus };
    }
    const now = new Date().toISOString();
    const { defaultVersion } = this.#options.config;
    const row = newInstance({ instanceId: id, name, version: version || defaultVersion, input, parent: null, now });
    const message = this.#newMessage(id, row.executionId, startEvent(row, now));
    await this.#commit('client', [
      { op: 'create', row },
      { op: 'send', message },
    ]);
    return { kind: 'started', instanceId: id };
  }

  async send(instanceId: string, event: HistoryEvent): Promise<void> {
    await this.#commit('client', [{ op: 'send', message: this.#newMessage(instanceId, null, event) }]);
  }

  async purge(instanceIds: readonly string[]): Promise<void> {
    if (instanceIds.length === 0) return;
    await this.#commit(
      'client',
      instanceIds.map((instanceId) => ({ op: 'purge', instanceId })),
    );
  }

  async #commit(kind: CommitKind, operations: readonly Operation[]): Promise<void> {
    await this.#hub.commit(kind, operations);
    if (this.#stopped) return;
    for (const operation of operations) {
      if (operation.op === 'schedule') this.#runActivity(operation.task);
      if (operation.op === 'send') this.#wakeFor(operation.message);
    }
  }

  #wakeFor(message: Message): void {
    const { visibleAt, instanceId } = message;
    if (visibleAt === undefined) this.#poke(instanceId);
    else this.#later(visibleAt, () => this.#poke(instanceId));
  }

  #later(at: number, action: () => void): void {
    if (this.#stopped) return;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        if (Date.now() < at) this.#later(at, action);
        else action();
      },
      Math.min(Math.max(at - Date.now(), 0), TIMEOUT_MS_MAX),
    );
    this.#timers.add(timer);
  }

  /** Runs an episode if a message waits; while one runs, its end looks again. */
  #poke(instanceId: string): void {
    if (this.#stopped || this.#active.has(instanceId)) return;
    const record = this.state.instances.get(instanceId);
    if (record === undefined || visibleMessages(record).length === 0) return;
    if (!this.#mayRun(record)) return;
    this.#active.add(instanceId);
    this.#episodeLimit(() => this.#episode(instanceId)).then(
      () => {
        this.#active.delete(instanceId);
        this.#poke(instanceId);
      },
      (error: unknown) => this.#options.log.error('An episode could not be run', error, { instanceId }),
    );
  }

  async #episode(instanceId: string): Promise<void> {
    const record = this.state.instances.get(instanceId);
    if (record === undefined) return;
    const episode = await runEpisode(record, visibleMessages(record), this.#episodes);
    // Purged, or purged and started anew, while the function ran: its decisions are nobody's any more.
    if (this.state.instances.get(instanceId) !== record) return;
    if (!('result' in episode)) {
      await this.#commit('episode', [{ op: 'consume', instanceId, ids: episode.consumed }]);
      return;
    }
    const history = [...record.history, ...episode.newEvents];
    const { row } = record;
    await this.#commit('episode', this.#transactionOf(row, episode));
    this.#report(record, episode);
    if (this.#hooks.recordDirectory !== undefined && episode.result.standing.kind !== 'waiting') {
      recordExecution(this.#hooks.recordDirectory, row, history);
    }
  }

  /** A decision that cannot be carried out (a time beyond all calendars) fails the instance, not the host. */
  #transactionOf(row: InstanceRow, episode: Episode): Operation[] {
    try {
      return transactionOf(row, episode, this.#transactions);
    } catch (error) {
      const failed = { ...episode, result: failedResult(error instanceof Error ? error.message : String(error)) };
      return transactionOf(row, failed, this.#transactions);
    }
  }

  #report(record: InstanceRecord, episode: Episode): void {
    const { instanceId, name, executionId } = record.row;
    const { standing, unknownNames, openTasksAfterEnd } = episode.result;
    const details = { function: name, instanceId };
    if (standing.kind === 'threw') this.#options.log.error('The orchestrator failed', standing.message, details);
    for (const unknown of unknownNames) {
      this.#options.log.error('The instance waits for ever', `there is no function '${unknown}'`, details);
    }
    if (openTasksAfterEnd > 0 && this.#hooks.strict && standing.kind === 'waiting') {
      this.#later(Date.now() + this.#hooks.openTasksAfterEndMs, () => this.#failIfStillOpen(record, executionId));
    }
  }

  /** Strict mode only: an orchestrator that has returned and left a timer uncancelled, or a task in flight for long. */
  #failIfStillOpen(record: InstanceRecord, executionId: string): void {
    const { row } = record;
    if (this.state.instances.get(row.instanceId) !== record || row.executionId !== executionId) return;
    if (isFinished(row.runtimeStatus)) return;
    if (this.#active.has(row.instanceId)) {
      this.#later(Date.now() + this.#hooks.openTasksAfterEndMs, () => this.#failIfStillOpen(record, executionId));
      return;
    }
    this.#fail(row, 'The orchestrator has returned and left tasks open: the instance would stay Running in Azure.');
  }

  /** What is newer than this host waits for one that is as new, or fails, as host.json says. */
  #mayRun(record: InstanceRecord): boolean {
    const { row } = record;
    const { defaultVersion, versionMatchStrategy, failOnVersionMismatch } = this.#options.config;
    if (mayRun(row.version, defaultVersion, versionMatchStrategy)) return true;
    if (failOnVersionMismatch) {
      this.#fail(row, `The instance has version '${row.version}', this host '${defaultVersion}'.`);
    } else {
      const details = { function: row.name, instanceId: row.instanceId };
      this.#options.log.warn(`The instance waits for a host of version ${row.version}.`, details);
    }
    return false;
  }

  #fail(row: InstanceRow, message: string): void {
    const episode: Episode = { consumed: [], newEvents: [], result: failedResult(message), customStatus: undefined };
    this.#inBackground(this.#commit('episode', transactionOf(row, episode, this.#transactions)));
  }

  #runActivity(task: ActivityTask): void {
    const run = async (): Promise<void> => {
      const twice = this.#hooks.runsTwice();
      const second = twice && this.#hooks.duplicateDelayMs === 0 ? this.#completeActivity(task) : undefined;
      await this.#completeActivity(task);
      await second;
      if (twice && second === undefined) {
        this.#later(Date.now() + this.#hooks.duplicateDelayMs, () => this.#inBackground(this.#completeActivity(task)));
      }
    };
    this.#inBackground(this.#activityLimit(run));
  }

  async #completeActivity(task: ActivityTask): Promise<void> {
    const event = await runActivity(task, this.#options);
    // A failure in a host that is ending may only be the end's doing: the next process runs the activity again.
    if (this.#stopped && event.EventType === EventType.TaskFailed) return;
    await this.#commit('activity', [
      { op: 'done', taskId: task.id },
      { op: 'send', message: this.#newMessage(task.instanceId, task.executionId, event) },
    ]);
  }

  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.#options.log.error('The task hub could not go on', error));
  }

  #newMessage(instanceId: string, executionId: string | null, event: HistoryEvent, visibleAt?: number): Message {
    const delayMs = visibleAt === undefined ? this.#hooks.messageDelayMs() : 0;
    const at = delayMs > 0 ? Date.now() + delayMs : visibleAt;
    return { id: this.state.newId(), instanceId, executionId, event, ...(at !== undefined && { visibleAt: at }) };
  }

  #isFunction(name: string, triggerType: string): boolean {
    return this.#options.registry.find(name)?.trigger.type.toLowerCase() === triggerType.toLowerCase();
  }
}

export function stamp(): { EventId: number; Timestamp: string } {
  return { EventId: -1, Timestamp: new Date().toISOString() };
}

/**
 * In the order they became visible: of two timers that are both overdue, the earlier comes first. An execution begins
 * with its start, whatever has overtaken it on the way.
 */
function visibleMessages(record: InstanceRecord): Message[] {
  const now = Date.now();
  const isStart = ({ event }: Message): boolean => event.EventType === EventType.ExecutionStarted;
  const time = (message: Message): number => message.visibleAt ?? Date.parse(message.event.Timestamp);
  const visible = record.inbox.filter((message) => (message.visibleAt ?? 0) <= now);
  if (record.history.length === 0 && !visible.some(isStart)) return [];
  return visible.sort(
    (left, right) => Number(isStart(right)) - Number(isStart(left)) || time(left) - time(right) || left.id - right.id,
  );
}
