/**
 * Runs an orchestrator of today over a history that was recorded once, through the real library and the host's
 * numbering, and says what it now does differently. An instance that is running while a new version of the app is
 * deployed is in exactly this place.
 */

import { invoker, registry } from './library.ts';
import '../../functions/orchestrators/commit-chunk.ts';
import '../../functions/orchestrators/complete-run.ts';
import '../../functions/orchestrators/dispatcher.ts';
import '../../functions/orchestrators/flush-repository.ts';
import '../../functions/orchestrators/root-group.ts';
import type { Action, OrchestratorAnswer } from '../../src/local/host/durable/actions.ts';
import { callOrchestrator } from '../../src/local/host/durable/episode.ts';
import { EventType, type ExecutionStarted, type HistoryEvent } from '../../src/local/host/durable/history.ts';
import { replay } from '../../src/local/host/durable/replay.ts';

const DAY_MS = 86_400_000;

/** What the host's record hook writes. */
export interface RecordedExecution {
  readonly name: string;
  readonly instanceId: string;
  readonly executionId: string;
  readonly version: string;
  readonly input: unknown;
  readonly history: readonly HistoryEvent[];
}

/** The same with what the orchestrator asked for when it was recorded. */
export interface RecordedHistory extends RecordedExecution {
  readonly actions: readonly Action[];
  readonly outcome: OrchestratorAnswer['outcome'];
}

/** The orchestrator does not do any more what a running instance has begun to do. */
export class OrchestratorChangedError extends Error {
  override readonly name = 'OrchestratorChangedError';

  constructor(orchestrator: string, what: string) {
    super(
      `The orchestrator "${orchestrator}" has changed: ${what}\n` +
        'An instance that is running while this is deployed would fail as non-deterministic, or go on with the result ' +
        'of another task. Give the change a version: docs/decisions/0006-orchestrators-are-versioned.md says how.',
    );
  }
}

/** Everything the orchestrator asks for over this history. @throws when the engine could not go on with it */
export async function answerTo(recorded: RecordedExecution, name = recorded.name): Promise<OrchestratorAnswer> {
  let answer: OrchestratorAnswer | undefined;
  for (const { before, fresh } of episodesOf(recorded.history)) {
    answer = await callOrchestrator({ row: rowOf(recorded, name), history: before, inbox: [] }, fresh, {
      registry,
      invoker,
      replayOptions: REPLAY_OPTIONS,
    });
    replay([...before, ...fresh], answer, { ...REPLAY_OPTIONS, executionId: recorded.executionId });
  }
  if (answer === undefined) throw new Error('The history is empty.');
  return answer;
}

const REPLAY_OPTIONS = { strict: false, shortTimerMaxMs: 6 * DAY_MS, timerLegMs: 3 * DAY_MS, isKnown: () => true };

/** @param name another orchestrator to take the place of the recorded one */
export async function expectSameActions(recorded: RecordedHistory, name = recorded.name): Promise<void> {
  let answer: OrchestratorAnswer;
  try {
    answer = await answerTo(recorded, name);
  } catch (error) {
    throw new OrchestratorChangedError(recorded.name, error instanceof Error ? error.message : String(error));
  }
  const difference =
    differenceOf(recorded.actions, answer.actions) ?? endDifferenceOf(recorded.outcome, answer.outcome);
  if (difference !== undefined) throw new OrchestratorChangedError(recorded.name, difference);
}

/** One for each OrchestratorStarted: what had happened before, and what was new then. */
function episodesOf(history: readonly HistoryEvent[]): { before: HistoryEvent[]; fresh: HistoryEvent[] }[] {
  const starts = history.flatMap((event, at) => (event.EventType === EventType.OrchestratorStarted ? [at] : []));
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? history.length;
    const episode = history.slice(start, end);
    const decided = episode.findIndex((event) => DECISIONS.has(event.EventType));
    return { before: history.slice(0, start), fresh: decided < 0 ? episode : episode.slice(0, decided) };
  });
}

const DECISIONS = new Set<number>([
  EventType.TaskScheduled,
  EventType.SubOrchestrationInstanceCreated,
  EventType.TimerCreated,
  EventType.OrchestratorCompleted,
]);

function rowOf(recorded: RecordedExecution, name: string): Parameters<typeof callOrchestrator>[0]['row'] {
  const { instanceId, executionId, version } = recorded;
  const started = recorded.history.find(
    (event): event is ExecutionStarted => event.EventType === EventType.ExecutionStarted,
  );
  const time = recorded.history[0]?.Timestamp ?? '';
  return {
    name,
    instanceId,
    executionId,
    version,
    runtimeStatus: 'Running',
    input: JSON.stringify(recorded.input),
    output: null,
    customStatus: null,
    createdTime: time,
    lastUpdatedTime: time,
    parent: started?.ParentInstance ?? null,
    generation: started?.Generation ?? 0,
  };
}

function differenceOf(before: readonly Action[], now: readonly Action[]): string | undefined {
  for (let at = 0; at < Math.max(before.length, now.length); at += 1) {
    const [was, is] = [before[at], now[at]];
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    if (was && is && 'compoundActions' in was && 'compoundActions' in is && was.actionType === is.actionType) {
      return `in action ${at + 1}, ${differenceOf(was.compoundActions, is.compoundActions)}`;
    }
    return `action ${at + 1} was ${textOf(was)}, and is now ${textOf(is)}.`;
  }
  return undefined;
}

const ACTION_NAMES: Readonly<Record<number, string>> = {
  0: 'callActivity',
  1: 'callActivityWithRetry',
  2: 'callSubOrchestrator',
  3: 'callSubOrchestratorWithRetry',
  4: 'continueAsNew',
  5: 'createTimer',
  6: 'waitForExternalEvent',
  11: 'Task.any',
  12: 'Task.all',
};

function textOf(action: Action | undefined): string {
  if (action === undefined) return 'nothing';
  const { actionType, ...rest } = action;
  if ('compoundActions' in action) return `Task.all or any of ${action.compoundActions.length}`;
  const name = 'functionName' in action ? ` ${action.functionName}` : '';
  const input = 'input' in rest ? rest.input : rest;
  return `${ACTION_NAMES[actionType] ?? `action type ${actionType}`}${name} ${JSON.stringify(input)}`;
}

function endDifferenceOf(
  before: OrchestratorAnswer['outcome'],
  now: OrchestratorAnswer['outcome'],
): string | undefined {
  const [was, is] = [JSON.stringify(before), JSON.stringify(now)];
  return was === is ? undefined : `it ended with ${was}, and ends now with ${is}.`;
}
