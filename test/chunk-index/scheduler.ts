/**
 * Decides, from a seed, which of the waiting requests is applied next, so that every interleaving of several actors can
 * happen and any one can be repeated. An actor may be killed: none of its requests is applied any more.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { RequestHook } from '../../src/storage/memory/gate.ts';
import { describeRequest, type TestClock } from './world.ts';

/** One for all schedulers: every further one slows down every promise of the process. */
const ACTORS = new AsyncLocalStorage<string>();

/** Far more than any scene needs. */
const STEPS_MAX = 20_000;

interface Waiting {
  readonly actor: string;
  readonly what: string;
  readonly proceed: () => void;
  readonly fail: (reason: Error) => void;
}

export interface Applied {
  readonly actor: string;
  readonly what: string;
}

export class Killed extends Error {}

export class Scheduler {
  readonly trace: string[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #killed = new Set<string>();
  /** Actors that stand still, and for how many more steps: the ones that wake late. */
  readonly #frozen = new Map<string, number>();
  #state: number;
  #running = 0;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** In [0, 1): mulberry32. */
  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Undefined from nothing. */
  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)];
  }

  /** Requests from outside an actor (the checker's) pass at once. */
  readonly hook: RequestHook = async (request) => {
    if (request.phase === 'before') {
      await this.#wait(describeRequest(request));
    }
  };

  sleeping(clock: TestClock): (ms: number) => Promise<void> {
    return async (ms) => {
      await this.#wait(`sleep ${Math.round(ms)}`);
      clock.advance(ms);
    };
  }

  /** Starts an actor; it gets to its first request and waits there. */
  async act<T>(actor: string, run: () => Promise<T>): Promise<T | Killed> {
    this.#running += 1;
    try {
      return await ACTORS.run(actor, run);
    } catch (error) {
      if (error instanceof Killed) {
        return error;
      }
      throw error;
    } finally {
      this.#running -= 1;
    }
  }

  /** What waits now is lost, and so is everything the actor still tries. */
  kill(actor: string): void {
    this.#killed.add(actor);
    for (const waiting of this.#waiting.splice(0)) {
      if (waiting.actor === actor) {
        waiting.fail(new Killed(actor));
      } else {
        this.#waiting.push(waiting);
      }
    }
  }

  /** Others get this many steps ahead of it, if they have so many to make. */
  freeze(actor: string, steps: number): void {
    this.#frozen.set(actor, steps);
  }

  get waitingActors(): string[] {
    return [...new Set(this.#waiting.map((waiting) => waiting.actor))];
  }

  /** Until no actor is left. `between`: nothing is in flight while it runs. */
  async run(between: (applied: Applied) => Promise<void>): Promise<void> {
    for (;;) {
      await turn();
      const next = this.#takeNext();
      if (next === undefined) {
        if (this.#running === 0) {
          return;
        }
        throw new Error('Every actor waits for something that no request will bring');
      }
      this.trace.push(`${next.actor}: ${next.what}`);
      if (this.trace.length > STEPS_MAX) {
        throw new Error(`No end in sight: ${this.trace.slice(-20).join('; ')}`);
      }
      next.proceed();
      await turn();
      await between(next);
    }
  }

  #takeNext(): Waiting | undefined {
    for (const [actor, steps] of this.#frozen) {
      if (steps > 0) {
        this.#frozen.set(actor, steps - 1);
      } else {
        this.#frozen.delete(actor);
      }
    }
    const awake = this.#waiting.filter((waiting) => !this.#frozen.has(waiting.actor));
    const next = this.pick(awake.length > 0 ? awake : this.#waiting);
    if (next !== undefined) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
    }
    return next;
  }

  async #wait(what: string): Promise<void> {
    const actor = ACTORS.getStore();
    if (actor === undefined) {
      return;
    }
    if (this.#killed.has(actor)) {
      throw new Killed(actor);
    }
    await new Promise<void>((proceed, fail) => this.#waiting.push({ actor, what, proceed, fail }));
  }
}
