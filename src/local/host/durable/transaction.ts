/** Turns what an episode decided into the operations of one transaction. */

import { randomUUID } from 'node:crypto';
import type { Decision } from './decisions.ts';
import type { Episode } from './episode.ts';
import { type Failure, orchestratorFailure, terminatedChild } from './failures.ts';
import { EventType, type ExecutionStarted, type HistoryEvent, type ParentInstance } from './history.ts';
import { type HubState, type InstanceRow, isFinished, type Message, type Operation } from './hub-state.ts';

export interface TransactionParts {
  readonly state: HubState;
  readonly strict: boolean;
  /** Of sub-orchestrations that are started without a version. */
  readonly defaultVersion: string;
  newMessage(instanceId: string, executionId: string | null, event: HistoryEvent, visibleAt?: number): Message;
}

type Ending = { status: 'Completed' | 'Failed' | 'Terminated'; code: 1 | 3 | 5; output: string; failure?: Failure };

export function transactionOf(row: InstanceRow, episode: Episode, parts: TransactionParts): Operation[] {
  const { instanceId } = row;
  const { standing, decisions, suspended } = episode.result;
  const now = new Date().toISOString();
  const customStatus = episode.customStatus ?? row.customStatus;
  const consume: Operation = { op: 'consume', instanceId, ids: episode.consumed };

  if (standing.kind === 'continuedAsNew') {
    const next = restarted(row, standing.input, now);
    const carried = standing.carriedOver.map((event) => parts.newMessage(instanceId, null, event));
    const messages = [parts.newMessage(instanceId, next.executionId, startEvent(next, now)), ...carried];
    return [
      consume,
      { op: 'forget', instanceId },
      { op: 'update', instanceId, changes: { ...next, customStatus } },
      ...messages.map((message): Operation => ({ op: 'send', message })),
    ];
  }

  const ending = endingOf(row, standing);
  const events = [...episode.newEvents, ...decisions.map((decision) => decisionEvent(decision, now))];
  events.push({ EventType: EventType.OrchestratorCompleted, EventId: -1, Timestamp: now });
  if (ending !== undefined) events.push(completedEvent(ending, now));
  const outgoing = decisions.flatMap((decision) => outgoingWork(row, decision, ending === undefined, now, parts));
  const runtimeStatus = ending?.status ?? (suspended ? 'Suspended' : 'Running');
  return [
    consume,
    { op: 'history', instanceId, events },
    ...outgoing,
    {
      op: 'update',
      instanceId,
      changes: { runtimeStatus, customStatus, lastUpdatedTime: now, ...(ending && { output: ending.output }) },
    },
    ...(ending === undefined || row.parent === null ? [] : [tellParent(row.parent, ending, now, parts)]),
  ];
}

export function newInstance(options: {
  readonly instanceId: string;
  readonly name: string;
  readonly version: string;
  readonly input: string | null;
  readonly parent: ParentInstance | null;
  readonly now: string;
}): InstanceRow {
  const { now, ...given } = options;
  return {
    ...given,
    executionId: randomUUID().replaceAll('-', ''),
    runtimeStatus: 'Pending',
    output: null,
    customStatus: null,
    createdTime: now,
    lastUpdatedTime: now,
    generation: 0,
  };
}

export function startEvent(row: InstanceRow, now: string): ExecutionStarted {
  return {
    EventType: EventType.ExecutionStarted,
    EventId: -1,
    Timestamp: now,
    OrchestrationInstance: { InstanceId: row.instanceId, ExecutionId: row.executionId },
    ParentInstance: row.parent,
    Name: row.name,
    Version: row.version,
    Input: row.input,
    Tags: null,
    ScheduledStartTime: null,
    Generation: row.generation,
  };
}

function restarted(row: InstanceRow, input: unknown, now: string): InstanceRow {
  return {
    ...row,
    executionId: randomUUID().replaceAll('-', ''),
    runtimeStatus: 'ContinuedAsNew',
    input: jsonText(input),
    lastUpdatedTime: now,
    generation: row.generation + 1,
  };
}

function endingOf(row: InstanceRow, standing: Episode['result']['standing']): Ending | undefined {
  switch (standing.kind) {
    case 'returned':
      return { status: 'Completed', code: 1, output: jsonText(standing.output) };
    case 'threw': {
      const failure = orchestratorFailure(row.name, standing.message);
      return { status: 'Failed', code: 3, output: JSON.stringify(failure.Reason), failure };
    }
    case 'terminated': {
      const failure = terminatedChild(standing.reason);
      return { status: 'Terminated', code: 5, output: JSON.stringify(standing.reason), failure };
    }
    default:
      return undefined;
  }
}

function completedEvent(ending: Ending, now: string): HistoryEvent {
  return {
    EventType: EventType.ExecutionCompleted,
    EventId: -1,
    Timestamp: now,
    OrchestrationStatus: ending.code,
    Result: ending.output,
    FailureDetails: null,
  };
}

function decisionEvent(decision: Decision, now: string): HistoryEvent {
  const common = { EventId: decision.number, Timestamp: now };
  switch (decision.kind) {
    case 'activity':
      return { EventType: EventType.TaskScheduled, ...common, Name: decision.name, Version: '', Input: null };
    case 'child': {
      const { name: Name, version: Version, instanceId: InstanceId } = decision;
      return {
        EventType: EventType.SubOrchestrationInstanceCreated,
        ...common,
        Name,
        Version,
        InstanceId,
        Input: null,
      };
    }
    case 'timer':
      return { EventType: EventType.TimerCreated, ...common, FireAt: decision.fireAt.toISOString() };
  }
}

function outgoingWork(
  row: InstanceRow,
  decision: Decision,
  isRunning: boolean,
  now: string,
  parts: TransactionParts,
): Operation[] {
  const { instanceId, executionId } = row;
  const { number } = decision;
  if (decision.kind === 'activity') {
    const { name, input } = decision;
    return [{ op: 'schedule', task: { id: parts.state.newId(), instanceId, executionId, number, name, input } }];
  }
  if (decision.kind === 'child') return startChild(row, decision, now, parts);
  if (!isRunning) return [];
  const FireAt = decision.fireAt.toISOString();
  const event: HistoryEvent = {
    EventType: EventType.TimerFired,
    EventId: -1,
    Timestamp: FireAt,
    TimerId: number,
    FireAt,
  };
  return [{ op: 'send', message: parts.newMessage(instanceId, executionId, event, decision.fireAt.getTime()) }];
}

/** An id that is in use: the real engine drops the start and the parent waits for ever; strict mode fails the child. */
function startChild(
  row: InstanceRow,
  decision: Extract<Decision, { kind: 'child' }>,
  now: string,
  parts: TransactionParts,
): Operation[] {
  const { number: TaskScheduleId, instanceId, name, version, input } = decision;
  const parent: ParentInstance = {
    OrchestrationInstance: { InstanceId: row.instanceId, ExecutionId: row.executionId },
    Name: row.name,
    TaskScheduleId,
    Version: row.version,
  };
  const existing = parts.state.instances.get(instanceId);
  if (existing !== undefined && !isFinished(existing.row.runtimeStatus)) {
    if (!parts.strict) return [];
    const status = existing.row.runtimeStatus;
    const failure = terminatedChild(`An Orchestration instance with the status ${status} already exists.`);
    return [tellParent(parent, { status: 'Failed', code: 3, output: '', failure }, now, parts)];
  }
  const child = newInstance({
    instanceId,
    name,
    version: version || parts.defaultVersion,
    input: jsonText(input),
    parent,
    now,
  });
  const start = parts.newMessage(instanceId, child.executionId, startEvent(child, now));
  return [
    { op: 'create', row: child },
    { op: 'send', message: start },
  ];
}

function tellParent(parent: ParentInstance, ending: Ending, now: string, parts: TransactionParts): Operation {
  const common = { EventId: -1, Timestamp: now, TaskScheduledId: parent.TaskScheduleId };
  const event: HistoryEvent =
    ending.failure === undefined
      ? { EventType: EventType.SubOrchestrationInstanceCompleted, ...common, Result: ending.output }
      : { EventType: EventType.SubOrchestrationInstanceFailed, ...common, ...ending.failure };
  const { InstanceId, ExecutionId } = parent.OrchestrationInstance;
  return { op: 'send', message: parts.newMessage(InstanceId, ExecutionId, event) };
}

function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
