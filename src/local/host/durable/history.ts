/**
 * History events of an orchestration, member for member as the library reads them. Inputs and results inside events
 * are JSON texts. `EventId` is the task's number for the four kinds of decision, and -1 otherwise.
 */

export const EventType = {
  ExecutionStarted: 0,
  ExecutionCompleted: 1,
  ExecutionTerminated: 3,
  TaskScheduled: 4,
  TaskCompleted: 5,
  TaskFailed: 6,
  SubOrchestrationInstanceCreated: 7,
  SubOrchestrationInstanceCompleted: 8,
  SubOrchestrationInstanceFailed: 9,
  TimerCreated: 10,
  TimerFired: 11,
  OrchestratorStarted: 12,
  OrchestratorCompleted: 13,
  EventRaised: 15,
  ExecutionSuspended: 19,
  ExecutionResumed: 20,
} as const;

interface Common {
  readonly EventId: number;
  readonly Timestamp: string;
}

export interface FailureDetails {
  readonly ErrorType: string;
  readonly ErrorMessage: string;
  readonly StackTrace: string | null;
  readonly IsNonRetriable: boolean;
  readonly Properties: unknown;
  readonly InnerFailure: null;
}

export interface ParentInstance {
  readonly OrchestrationInstance: { readonly InstanceId: string; readonly ExecutionId: string };
  readonly Name: string;
  readonly TaskScheduleId: number;
  readonly Version: string;
}

export interface ExecutionStarted extends Common {
  readonly EventType: typeof EventType.ExecutionStarted;
  readonly OrchestrationInstance: { readonly InstanceId: string; readonly ExecutionId: string };
  readonly ParentInstance: ParentInstance | null;
  readonly Name: string;
  readonly Version: string;
  readonly Input: string | null;
  readonly Tags: null;
  readonly ScheduledStartTime: null;
  readonly Generation: number;
}

interface Failed extends Common {
  readonly TaskScheduledId: number;
  readonly Reason: string;
  readonly Details: string;
  readonly FailureDetails: FailureDetails | null;
}

export type EventRaised = Common & {
  readonly EventType: typeof EventType.EventRaised;
  readonly Name: string;
  readonly Input: string | null;
};

export type HistoryEvent =
  | ExecutionStarted
  | (Common & {
      readonly EventType: typeof EventType.ExecutionCompleted;
      readonly OrchestrationStatus: 1 | 3 | 5;
      readonly Result: string | null;
      readonly FailureDetails: null;
    })
  | (Common & { readonly EventType: typeof EventType.ExecutionTerminated; readonly Input: string })
  | (Common & {
      readonly EventType: typeof EventType.TaskScheduled;
      readonly Name: string;
      readonly Version: string;
      readonly Input: null;
    })
  | (Common & {
      readonly EventType: typeof EventType.TaskCompleted | typeof EventType.SubOrchestrationInstanceCompleted;
      readonly TaskScheduledId: number;
      readonly Result: string | null;
    })
  | (Failed & { readonly EventType: typeof EventType.TaskFailed | typeof EventType.SubOrchestrationInstanceFailed })
  | (Common & {
      readonly EventType: typeof EventType.SubOrchestrationInstanceCreated;
      readonly Name: string;
      readonly Version: string;
      readonly InstanceId: string;
      readonly Input: null;
    })
  | (Common & { readonly EventType: typeof EventType.TimerCreated; readonly FireAt: string })
  | (Common & {
      readonly EventType: typeof EventType.TimerFired;
      readonly TimerId: number;
      readonly FireAt: string;
    })
  | (Common & { readonly EventType: typeof EventType.OrchestratorStarted | typeof EventType.OrchestratorCompleted })
  | EventRaised
  | (Common & {
      readonly EventType: typeof EventType.ExecutionSuspended | typeof EventType.ExecutionResumed;
      readonly Reason: string;
    });

/** Kinds that the library marks as replayed once an earlier episode has consumed them. */
const CONSUMED_BY_CODE = new Set<number>([
  EventType.ExecutionStarted,
  EventType.TaskCompleted,
  EventType.TaskFailed,
  EventType.SubOrchestrationInstanceCompleted,
  EventType.SubOrchestrationInstanceFailed,
  EventType.TimerFired,
  EventType.EventRaised,
]);

/** The event as the library gets it. `earlier`: it belongs to an earlier episode than the one to run. */
export function withIsPlayed(event: HistoryEvent, earlier: boolean): HistoryEvent & { readonly IsPlayed: boolean } {
  return { ...event, IsPlayed: earlier && CONSUMED_BY_CODE.has(event.EventType) };
}
