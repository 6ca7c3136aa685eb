/** An instance as the HTTP API shows it, and its history in the API's shape. */

import { EventType, type HistoryEvent } from './history.ts';
import type { InstanceRecord } from './hub-state.ts';

export interface StatusOptions {
  readonly showInput: boolean;
  readonly showHistory: boolean;
  readonly showHistoryOutput: boolean;
}

const NAMES = new Map<number, string>(Object.entries(EventType).map(([name, number]) => [number, name]));

export function instanceStatus(record: InstanceRecord, options: StatusOptions): Record<string, unknown> {
  const { row } = record;
  return {
    name: row.name,
    instanceId: row.instanceId,
    runtimeStatus: row.runtimeStatus,
    input: options.showInput ? parse(row.input) : null,
    customStatus: parse(row.customStatus),
    output: parse(row.output),
    createdTime: toSeconds(row.createdTime),
    lastUpdatedTime: toSeconds(row.lastUpdatedTime),
    ...(options.showHistory && { historyEvents: historyView(record.history, options) }),
  };
}

/** Episode marks are left out; each completion carries the name and time of what it completes, which is left out. */
function historyView(history: readonly HistoryEvent[], options: StatusOptions): Record<string, unknown>[] {
  const started = new Map<number, HistoryEvent>();
  const view: Record<string, unknown>[] = [];
  for (const event of history) {
    switch (event.EventType) {
      case EventType.OrchestratorStarted:
      case EventType.OrchestratorCompleted:
        break;
      case EventType.TaskScheduled:
      case EventType.SubOrchestrationInstanceCreated:
        started.set(event.EventId, event);
        break;
      default:
        view.push(viewOf(event, started, options));
    }
  }
  return view;
}

function viewOf(
  event: HistoryEvent,
  started: ReadonlyMap<number, HistoryEvent>,
  options: StatusOptions,
): Record<string, unknown> {
  const { EventType: type, EventId: _, ...members } = event;
  const view: Record<string, unknown> = { EventType: NAMES.get(type), ...members };
  if ('TaskScheduledId' in event) {
    const start = started.get(event.TaskScheduledId);
    view.ScheduledTime = start?.Timestamp;
    view.FunctionName = start !== undefined && 'Name' in start ? start.Name : undefined;
  }
  if (event.EventType === EventType.ExecutionStarted) {
    view.FunctionName = event.Name;
    view.Input = options.showInput ? parse(event.Input) : undefined;
    for (const member of ['Name', 'ParentInstance', 'Tags', 'Version', 'OrchestrationInstance']) delete view[member];
  }
  if ('Result' in event) view.Result = options.showHistoryOutput ? parse(event.Result) : undefined;
  for (const member of ['TaskScheduledId', 'TimerId']) delete view[member];
  return view;
}

function parse(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}

/** Times are cut to seconds in the API. */
function toSeconds(time: string): string {
  return `${time.slice(0, 19)}Z`;
}
