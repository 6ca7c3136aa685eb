/**
 * Everything the task hub knows, in memory. It changes only through operations, so that applying the journal's
 * operations again gives the same state. Messages to finished or unknown instances vanish.
 */

import type { HistoryEvent, ParentInstance } from './history.ts';

export type RuntimeStatus =
  | 'Pending'
  | 'Running'
  | 'ContinuedAsNew'
  | 'Suspended'
  | 'Completed'
  | 'Failed'
  | 'Terminated';

/** `input`, `output` and `customStatus` are JSON texts; times are ISO texts. */
export interface InstanceRow {
  readonly instanceId: string;
  readonly executionId: string;
  readonly name: string;
  readonly version: string;
  readonly runtimeStatus: RuntimeStatus;
  readonly input: string | null;
  readonly output: string | null;
  readonly customStatus: string | null;
  readonly createdTime: string;
  readonly lastUpdatedTime: string;
  readonly parent: ParentInstance | null;
  readonly generation: number;
}

export interface Message {
  readonly id: number;
  readonly instanceId: string;
  /** null: for whichever execution runs when it arrives. */
  readonly executionId: string | null;
  readonly event: HistoryEvent;
  /** Milliseconds since the epoch; until then the message waits. */
  readonly visibleAt?: number;
}

export interface ActivityTask {
  readonly id: number;
  readonly instanceId: string;
  readonly executionId: string;
  readonly number: number;
  readonly name: string;
  readonly input: unknown;
}

export interface ScheduleStatus {
  readonly expression: string;
  readonly last: string | null;
  readonly next: string;
  readonly lastUpdated: string;
}

export type Operation =
  | { readonly op: 'counter'; readonly nextId: number }
  | { readonly op: 'create'; readonly row: InstanceRow }
  | { readonly op: 'update'; readonly instanceId: string; readonly changes: Partial<InstanceRow> }
  | { readonly op: 'history'; readonly instanceId: string; readonly events: readonly HistoryEvent[] }
  | { readonly op: 'forget'; readonly instanceId: string }
  | { readonly op: 'purge'; readonly instanceId: string }
  | { readonly op: 'send'; readonly message: Message }
  | { readonly op: 'consume'; readonly instanceId: string; readonly ids: readonly number[] }
  | { readonly op: 'schedule'; readonly task: ActivityTask }
  | { readonly op: 'done'; readonly taskId: number }
  | { readonly op: 'timer'; readonly name: string; readonly status: ScheduleStatus };

export interface InstanceRecord {
  row: InstanceRow;
  history: HistoryEvent[];
  inbox: Message[];
}

export function isFinished(status: RuntimeStatus): boolean {
  return status === 'Completed' || status === 'Failed' || status === 'Terminated';
}

export class HubState {
  readonly instances = new Map<string, InstanceRecord>();
  readonly activities = new Map<number, ActivityTask>();
  readonly timers = new Map<string, ScheduleStatus>();
  #nextId = 1;

  newId(): number {
    return this.#nextId++;
  }

  apply(operation: Operation): void {
    switch (operation.op) {
      case 'counter':
        this.#nextId = Math.max(this.#nextId, operation.nextId);
        return;
      case 'create':
        this.instances.set(operation.row.instanceId, { row: operation.row, history: [], inbox: [] });
        return;
      case 'purge':
        this.instances.delete(operation.instanceId);
        return;
      case 'send':
        this.#send(operation.message);
        return;
      case 'schedule':
        this.#nextId = Math.max(this.#nextId, operation.task.id + 1);
        this.activities.set(operation.task.id, operation.task);
        return;
      case 'done':
        this.activities.delete(operation.taskId);
        return;
      case 'timer':
        this.timers.set(operation.name, operation.status);
        return;
      default:
        this.#change(operation);
    }
  }

  #send(message: Message): void {
    this.#nextId = Math.max(this.#nextId, message.id + 1);
    const record = this.instances.get(message.instanceId);
    if (record !== undefined && !isFinished(record.row.runtimeStatus)) record.inbox.push(message);
  }

  #change(operation: Extract<Operation, { op: 'update' | 'history' | 'forget' | 'consume' }>): void {
    const record = this.instances.get(operation.instanceId);
    if (record === undefined) return;
    if (operation.op === 'history') {
      record.history.push(...operation.events);
    } else if (operation.op === 'forget') {
      record.history = [];
    } else if (operation.op === 'consume') {
      const ids = new Set(operation.ids);
      record.inbox = record.inbox.filter((message) => !ids.has(message.id));
    } else {
      record.row = { ...record.row, ...operation.changes };
      if (isFinished(record.row.runtimeStatus)) record.inbox = [];
    }
  }

  /** The same state as transactions, for a compacted journal. */
  *snapshot(): Iterable<Operation[]> {
    yield [{ op: 'counter', nextId: this.#nextId }];
    for (const { row, history, inbox } of this.instances.values()) {
      const messages = inbox.map((message): Operation => ({ op: 'send', message }));
      yield [{ op: 'create', row }, { op: 'history', instanceId: row.instanceId, events: history }, ...messages];
    }
    for (const task of this.activities.values()) yield [{ op: 'schedule', task }];
    for (const [name, status] of this.timers) yield [{ op: 'timer', name, status }];
  }
}
