/** What a replay is told and what it finds: the words that replay, episode and transaction share. */

import type { EventRaised } from './history.ts';

export type Decision =
  | { readonly kind: 'activity'; readonly number: number; readonly name: string; readonly input: unknown }
  | {
      readonly kind: 'child';
      readonly number: number;
      readonly name: string;
      readonly input: unknown;
      readonly instanceId: string;
      readonly version: string;
    }
  | { readonly kind: 'timer'; readonly number: number; readonly fireAt: Date };

export type Standing =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'returned'; readonly output: unknown }
  | { readonly kind: 'threw'; readonly message: string }
  | { readonly kind: 'terminated'; readonly reason: string }
  | { readonly kind: 'continuedAsNew'; readonly input: unknown; readonly carriedOver: readonly EventRaised[] };

export interface ReplayResult {
  readonly decisions: readonly Decision[];
  readonly standing: Standing;
  readonly suspended: boolean;
  /** The function has returned or thrown, yet tasks it started are still open. */
  readonly openTasksAfterEnd: number;
  /** Names of functions the app does not have: their callers wait for ever. */
  readonly unknownNames: readonly string[];
}

export interface ReplayOptions {
  readonly executionId: string;
  /** A timer further away than this is made of legs; both sides number each leg. */
  readonly shortTimerMaxMs: number;
  readonly timerLegMs: number;
  /** Refuse what would leave the instance running for ever in Azure. */
  readonly strict: boolean;
  readonly isKnown: (kind: 'activity' | 'child', name: string) => boolean;
}

/** The orchestrator does what the engine cannot follow, or no longer does what its history says; the instance fails. */
export class ReplayError extends Error {
  override readonly name = 'ReplayError';
}
