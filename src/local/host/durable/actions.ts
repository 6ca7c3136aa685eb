/** What an orchestrator function answers: the actions of the whole execution so far, in order, and how it stands. */

import { z } from 'zod';
import type { InvocationResponse } from '../rpc-types.ts';

/** The library appends its state to the error text after this marker when the orchestrator threw. */
const FAILURE_MARKER = '\n\n$OutOfProcData$:';

const retryOptions = z.object({
  firstRetryIntervalInMilliseconds: z.number(),
  maxNumberOfAttempts: z.number(),
  backoffCoefficient: z.number().nullish(),
  maxRetryIntervalInMilliseconds: z.number().nullish(),
  retryTimeoutInMilliseconds: z.number().nullish(),
});
export type RetryOptions = z.infer<typeof retryOptions>;

const activity = { functionName: z.string(), input: z.unknown().optional() };
const child = { ...activity, instanceId: z.string().nullish(), version: z.string().nullish() };

export type Action =
  | { actionType: 0; functionName: string; input?: unknown }
  | { actionType: 1; functionName: string; input?: unknown; retryOptions: RetryOptions }
  | ChildAction
  | (Omit<ChildAction, 'actionType'> & { actionType: 3; retryOptions: RetryOptions })
  | { actionType: 4; input?: unknown }
  | { actionType: 5; fireAt: string; isCanceled: boolean }
  | { actionType: 6; externalEventName: string }
  | { actionType: 11 | 12; compoundActions: Action[] }
  | { actionType: 7 | 8 | 9 | 10 | 13 | 14 };

export interface ChildAction {
  actionType: 2;
  functionName: string;
  input?: unknown;
  instanceId?: string | null | undefined;
  version?: string | null | undefined;
}

const action: z.ZodType<Action> = z.lazy(() =>
  z.discriminatedUnion('actionType', [
    z.object({ actionType: z.literal(0), ...activity }),
    z.object({ actionType: z.literal(1), ...activity, retryOptions }),
    z.object({ actionType: z.literal(2), ...child }),
    z.object({ actionType: z.literal(3), ...child, retryOptions }),
    z.object({ actionType: z.literal(4), input: z.unknown().optional() }),
    z.object({ actionType: z.literal(5), fireAt: z.string(), isCanceled: z.boolean() }),
    z.object({ actionType: z.literal(6), externalEventName: z.string() }),
    z.object({ actionType: z.literal([11, 12]), compoundActions: z.array(action) }),
    z.object({ actionType: z.literal([7, 8, 9, 10, 13, 14]) }),
  ]),
);

const answer = z.object({
  isDone: z.boolean(),
  actions: z.array(z.array(action)),
  output: z.unknown().optional(),
  error: z.string().optional(),
  customStatus: z.unknown().optional(),
});

export interface OrchestratorAnswer {
  readonly actions: readonly Action[];
  readonly outcome:
    | { readonly kind: 'waiting' }
    | { readonly kind: 'returned'; readonly output: unknown }
    | { readonly kind: 'threw'; readonly message: string };
  readonly customStatus: unknown;
}

export function parseAnswer(response: InvocationResponse): OrchestratorAnswer {
  const data = response.returnValue;
  const text = data?.json ?? data?.string;
  if (text === undefined) throw new Error('The orchestrator function answered nothing the host understands.');
  const { isDone, actions, output, customStatus } = answer.parse(JSON.parse(text));
  return {
    actions: actions.flat(),
    outcome: isDone ? { kind: 'returned', output } : { kind: 'waiting' },
    customStatus,
  };
}

/** The state of an orchestrator that threw; an exception without the marker has no state and is returned as it is. */
export function parseThrown(error: unknown): OrchestratorAnswer | Error {
  const message = error instanceof Error ? error.message : String(error);
  const at = message.indexOf(FAILURE_MARKER);
  if (at < 0) return error instanceof Error ? error : new Error(message);
  const state = answer.parse(JSON.parse(message.slice(at + FAILURE_MARKER.length)));
  return {
    actions: state.actions.flat(),
    outcome: { kind: 'threw', message: state.error ?? '' },
    customStatus: state.customStatus,
  };
}
