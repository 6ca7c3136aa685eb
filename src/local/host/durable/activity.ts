/** Runs one activity, with the conversions of the real host between JSON and what the function sees and returns. */

import type { Invoker } from '../invocation.ts';
import type { HostLog } from '../log.ts';
import type { FunctionRegistry } from '../registry.ts';
import type { RpcData } from '../rpc-types.ts';
import { activityFailure } from './failures.ts';
import { EventType, type HistoryEvent } from './history.ts';
import type { ActivityTask } from './hub-state.ts';

export interface ActivityParts {
  readonly registry: FunctionRegistry;
  readonly invoker: Invoker;
  readonly log: HostLog;
}

/** Never rejects: a failed activity is an event like a completed one. */
export async function runActivity(task: ActivityTask, parts: ActivityParts): Promise<HistoryEvent> {
  const at = (): { EventId: number; Timestamp: string; TaskScheduledId: number } => ({
    EventId: -1,
    Timestamp: new Date().toISOString(),
    TaskScheduledId: task.number,
  });
  try {
    const target = parts.registry.find(task.name);
    if (target === undefined) throw new Error(`The function '${task.name}' doesn't exist in this version of the app.`);
    const trigger = activityInput(task.input);
    const triggerMetadata = { instanceId: { string: task.instanceId }, data: trigger, [target.triggerName]: trigger };
    const response = await parts.invoker.invoke(target, { trigger, triggerMetadata });
    return { EventType: EventType.TaskCompleted, ...at(), Result: resultText(response.returnValue ?? undefined) };
  } catch (error) {
    parts.log.error('The activity failed', error, { function: task.name, instanceId: task.instanceId });
    return { EventType: EventType.TaskFailed, ...at(), ...activityFailure(task.name, error) };
  }
}

/** A string arrives here as the library sent it, already encoded once more; a boolean becomes .NET's text. */
function activityInput(input: unknown): RpcData {
  if (input === null || input === undefined) return {};
  if (typeof input === 'string') return { string: input };
  if (typeof input === 'boolean') return { string: input ? 'True' : 'False' };
  return { string: JSON.stringify(input) };
}

function resultText(data: RpcData | undefined): string | null {
  if (data === undefined) return null;
  if (data.json !== undefined) return data.json;
  if (data.bytes !== undefined) return JSON.stringify(Buffer.from(data.bytes).toString('base64'));
  return JSON.stringify(data.string ?? data.int ?? data.double ?? null);
}
