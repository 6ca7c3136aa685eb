/**
 * What tests may switch on, all off by default. Given as settings of the host (never seen by the app):
 *
 * - `LOCAL_HOST_DUPLICATE_ACTIVITIES=0.3`    run an activity twice with this probability …
 * - `LOCAL_HOST_DUPLICATE_DELAY_MS=200`      … the second time this long after the first has ended (0: side by side)
 * - `LOCAL_HOST_CRASH=before:17`             kill -9 itself before or after the 17th commit of client, episode or
 *                                            activity; with a third part only commits of that kind count
 *                                            (`after:3:activity`; `timer` for the notes of timer triggers)
 * - `LOCAL_HOST_RACY_STARTS_MS=2000`         a start with the id of an instance younger than this answers 202 and its
 *                                            input is lost, as in the real engine's race
 * - `LOCAL_HOST_DELAY_MESSAGES=0.2:100`      hold back a message with this probability for this many milliseconds
 * - `LOCAL_HOST_STRICT=1`                    fail an instance that would run for ever in Azure: unknown function names,
 *                                            retryTimeoutInMilliseconds, a taken sub-orchestration id, and …
 * - `LOCAL_HOST_STRICT_OPEN_TASKS_MS=5000`   … tasks still open this long after the orchestrator has returned
 * - `LOCAL_HOST_RECORD_DIRECTORY=path`       write the history of each finished execution to a file
 * - `LOCAL_HOST_SHORT_TIMER_MAX_MS=…`, `LOCAL_HOST_TIMER_LEG_MS=…`  the limits of 6 and 3 days for long timers
 * - `LOCAL_HOST_SEED=7`                      seed of the probabilities; without it a random one, logged
 */

import { randomInt } from 'node:crypto';
import type { CommitKind } from './durable/hub.ts';
import { SettingsError } from './settings.ts';

const PREFIX = 'LOCAL_HOST_';
const DAY_MS = 86_400_000;

type Phase = 'before' | 'after';

export class TestHooks {
  readonly strict: boolean;
  readonly openTasksAfterEndMs: number;
  readonly duplicateDelayMs: number;
  readonly racyStartsMs: number;
  readonly recordDirectory: string | undefined;
  readonly shortTimerMaxMs: number;
  readonly timerLegMs: number;
  readonly seed: number;
  readonly #duplicates: number;
  readonly #delays: { probability: number; delayMs: number };
  readonly #crash: { phase: Phase; count: number; kind: string | undefined } | undefined;
  #randomState: number;
  readonly #commits: Record<Phase, number> = { before: 0, after: 0 };

  constructor(settings: Readonly<Record<string, string>>) {
    const number = (name: string, fallback: number): number => {
      const value = Number(settings[PREFIX + name] ?? fallback);
      if (Number.isFinite(value) && value >= 0) return value;
      throw new SettingsError(`${PREFIX}${name} must be a number`);
    };
    this.strict = settings[`${PREFIX}STRICT`] === '1';
    this.openTasksAfterEndMs = number('STRICT_OPEN_TASKS_MS', 5000);
    this.duplicateDelayMs = number('DUPLICATE_DELAY_MS', 0);
    this.racyStartsMs = number('RACY_STARTS_MS', 0);
    this.recordDirectory = settings[`${PREFIX}RECORD_DIRECTORY`];
    this.shortTimerMaxMs = number('SHORT_TIMER_MAX_MS', 6 * DAY_MS);
    this.timerLegMs = number('TIMER_LEG_MS', 3 * DAY_MS);
    this.seed = number('SEED', randomInt(2 ** 31));
    this.#duplicates = number('DUPLICATE_ACTIVITIES', 0);
    const [probability = '0', delay = '0'] = (settings[`${PREFIX}DELAY_MESSAGES`] ?? '').split(':');
    this.#delays = { probability: Number(probability), delayMs: Number(delay) };
    this.#crash = parseCrash(settings[`${PREFIX}CRASH`]);
    this.#randomState = this.seed;
  }

  /** True when one of the probabilities is in use, so that the seed is worth a log line. */
  get usesChance(): boolean {
    return this.#duplicates > 0 || this.#delays.probability > 0;
  }

  runsTwice(): boolean {
    return this.#duplicates > 0 && this.#random() < this.#duplicates;
  }

  messageDelayMs(): number {
    return this.#delays.probability > 0 && this.#random() < this.#delays.probability ? this.#delays.delayMs : 0;
  }

  /** Dies here when this is the commit to die at; `flush` first makes an "after" true. */
  atCommit(phase: Phase, kind: CommitKind, flush?: () => void): void {
    if (this.#crash === undefined || this.#crash.phase !== phase) return;
    const { kind: wanted } = this.#crash;
    if (wanted === undefined ? kind === 'timer' : kind !== wanted) return;
    this.#commits[phase] += 1;
    if (this.#commits[phase] !== this.#crash.count) return;
    flush?.();
    process.kill(process.pid, 'SIGKILL');
    // The signal may arrive a moment later: nothing else may happen before.
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }

  /** mulberry32: small, and the same sequence for the same seed everywhere. */
  #random(): number {
    this.#randomState = (this.#randomState + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#randomState ^ (this.#randomState >>> 15), 1 | this.#randomState);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** Settings of the host itself, which the app does not see. */
export function isHostSetting(name: string): boolean {
  return name.startsWith(PREFIX);
}

function parseCrash(text: string | undefined): { phase: Phase; count: number; kind: string | undefined } | undefined {
  if (text === undefined) return undefined;
  const [phase, count, kind] = text.split(':');
  if ((phase !== 'before' && phase !== 'after') || !Number.isInteger(Number(count))) {
    throw new SettingsError(`${PREFIX}CRASH must look like before:17 or after:3:activity`);
  }
  return { phase, count: Number(count), kind };
}
