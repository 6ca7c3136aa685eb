/**
 * One step of an orchestration: the messages that wait become history, the function replays, and what it newly
 * decided becomes one transaction (history, outgoing work, consumed messages and the instance's row together).
 */

import type { Invoker } from '../invocation.ts';
import type { FunctionRegistry } from '../registry.ts';
import { formatTimeSpan } from '../time-span.ts';
import { type OrchestratorAnswer, parseAnswer, parseThrown } from './actions.ts';
import { ReplayError, type ReplayOptions, type ReplayResult } from './decisions.ts';
import { EventType, type HistoryEvent, withIsPlayed } from './history.ts';
import type { InstanceRecord, Message } from './hub-state.ts';
import { replay } from './replay.ts';

/** The newest message schema the library knows. */
const UPPER_SCHEMA_VERSION_NEW = 3;
/** The real host refuses a larger custom status; counted in UTF-16 bytes. */
const CUSTOM_STATUS_BYTES_MAX = 16 * 1024;

export interface Episode {
  /** Messages taken out of the inbox, the dropped ones included. */
  readonly consumed: readonly number[];
  /** OrchestratorStarted and what was new; empty when there was nothing to run for. */
  readonly newEvents: readonly HistoryEvent[];
  readonly result: ReplayResult;
  /** JSON text, or undefined to leave it as it was. */
  readonly customStatus: string | undefined;
}

export interface EpisodeParts {
  readonly registry: FunctionRegistry;
  readonly invoker: Invoker;
  readonly replayOptions: Omit<ReplayOptions, 'executionId'>;
}

/** Undefined when all messages were dropped and nothing is to run. */
export async function runEpisode(
  record: InstanceRecord,
  messages: readonly Message[],
  parts: EpisodeParts,
): Promise<Episode | { readonly consumed: readonly number[]; readonly newEvents: readonly [] }> {
  const consumed = messages.map((message) => message.id);
  const accepted = acceptMessages(record, messages);
  if (accepted.length === 0) return { consumed, newEvents: [] };

  const newEvents: HistoryEvent[] = [orchestratorStarted(record.history), ...accepted];
  try {
    const answer = await callOrchestrator(record, newEvents, parts);
    const options = { ...parts.replayOptions, executionId: record.row.executionId };
    const result = replay([...record.history, ...newEvents], answer, options);
    return { consumed, newEvents, result, customStatus: customStatusText(answer.customStatus) };
  } catch (error) {
    return {
      consumed,
      newEvents,
      result: failedResult(error instanceof Error ? error.message : String(error)),
      customStatus: undefined,
    };
  }
}

/** Drops what is for another execution, a second start, and completions the history has already. */
function acceptMessages(record: InstanceRecord, messages: readonly Message[]): HistoryEvent[] {
  const seen = new Set(record.history.map(completionKey));
  const accepted: HistoryEvent[] = [];
  for (const { executionId, event } of messages) {
    if (executionId !== null && executionId !== record.row.executionId) continue;
    const key = completionKey(event);
    if (key !== undefined && seen.has(key)) continue;
    seen.add(key);
    accepted.push(event);
  }
  return accepted;
}

/** Events of which one execution may have only one. */
function completionKey(event: HistoryEvent): string | undefined {
  switch (event.EventType) {
    case EventType.ExecutionStarted:
      return 'start';
    case EventType.TaskCompleted:
    case EventType.TaskFailed:
    case EventType.SubOrchestrationInstanceCompleted:
    case EventType.SubOrchestrationInstanceFailed:
      return `task ${event.TaskScheduledId}`;
    case EventType.TimerFired:
      return `task ${event.TimerId}`;
    default:
      return undefined;
  }
}

/** Strictly later than the one before: `currentUtcDateTime` never stands still between episodes. */
function orchestratorStarted(history: readonly HistoryEvent[]): HistoryEvent {
  const last = history.findLast((event) => event.EventType === EventType.OrchestratorStarted);
  const earliest = last === undefined ? 0 : Date.parse(last.Timestamp) + 1;
  const Timestamp = new Date(Math.max(Date.now(), earliest)).toISOString();
  return { EventType: EventType.OrchestratorStarted, EventId: -1, Timestamp };
}

/** Asks the function itself, with all of its history. */
export async function callOrchestrator(
  record: InstanceRecord,
  newEvents: readonly HistoryEvent[],
  parts: EpisodeParts,
): Promise<OrchestratorAnswer> {
  const { row } = record;
  const target = parts.registry.find(row.name);
  if (target === undefined)
    throw new ReplayError(`The function '${row.name}' doesn't exist in this version of the app.`);
  const payload = {
    history: [
      ...record.history.map((event) => withIsPlayed(event, true)),
      ...newEvents.map((event) => withIsPlayed(event, false)),
    ],
    input: row.input === null ? null : (JSON.parse(row.input) as unknown),
    instanceId: row.instanceId,
    isReplaying: record.history.length > 0,
    parentInstanceId: row.parent?.OrchestrationInstance.InstanceId ?? null,
    upperSchemaVersion: 1,
    upperSchemaVersionNew: UPPER_SCHEMA_VERSION_NEW,
    longRunningTimerIntervalDuration: formatTimeSpan(parts.replayOptions.timerLegMs),
    maximumShortTimerDuration: formatTimeSpan(parts.replayOptions.shortTimerMaxMs),
    defaultHttpAsyncRequestSleepTimeMillseconds: 30_000,
  };
  try {
    return parseAnswer(await parts.invoker.invoke(target, { trigger: { string: JSON.stringify(payload) } }));
  } catch (error) {
    const thrown = parseThrown(error);
    if (thrown instanceof Error) throw thrown;
    return thrown;
  }
}

function customStatusText(status: unknown): string | undefined {
  if (status === undefined || status === null) return undefined;
  const text = JSON.stringify(status);
  if (text.length * 2 > CUSTOM_STATUS_BYTES_MAX) {
    throw new ReplayError('The size of the JSON-serialized custom status must not exceed 16 KB of UTF-16 text.');
  }
  return text;
}

export function failedResult(message: string): ReplayResult {
  return {
    decisions: [],
    standing: { kind: 'threw', message },
    suspended: false,
    openTasksAfterEnd: 0,
    unknownNames: [],
  };
}
