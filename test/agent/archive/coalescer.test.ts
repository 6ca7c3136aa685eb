import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Coalescer } from '../../../src/agent/archive/coalescer.ts';

describe('Coalescer', () => {
  it('answers every question, within the sizes of calls and their number', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(1000), { minLength: 1, maxLength: 80 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 3 }),
        async (keys, keysMax, callsMax) => {
          let running = 0;
          const sizes: number[] = [];
          const coalescer = new Coalescer<number, string>({
            keysMax,
            callsMax,
            async call(asked) {
              sizes.push(asked.length);
              expect(++running).toBeLessThanOrEqual(callsMax);
              await new Promise((resolve) => setImmediate(resolve));
              running--;
              return asked.map(String);
            },
          });
          expect(await Promise.all(keys.map((key) => coalescer.ask(key)))).toEqual(keys.map(String));
          expect(Math.max(...sizes)).toBeLessThanOrEqual(keysMax);
          // Asked in one turn, so no call but the last is smaller than it could be.
          expect(sizes.length).toBe(Math.ceil(keys.length / keysMax));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('gathers what is asked while a call is under way', async () => {
    const calls: number[][] = [];
    let release: (() => void) | undefined;
    const coalescer = new Coalescer<number, number>({
      keysMax: 10,
      callsMax: 1,
      async call(keys) {
        calls.push([...keys]);
        if (calls.length === 1) {
          await new Promise<void>((resolve) => {
            release = resolve;
          });
        }
        return keys;
      },
    });
    const first = coalescer.ask(1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const others = [coalescer.ask(2), coalescer.ask(3)];
    release?.();
    await Promise.all([first, ...others]);
    expect(calls).toEqual([[1], [2, 3]]);
  });

  it('fails all questions of a call that fails, and goes on with the next', async () => {
    let calls = 0;
    const coalescer = new Coalescer<number, number>({
      keysMax: 2,
      callsMax: 1,
      async call(keys) {
        if (++calls === 1) {
          throw new Error('down');
        }
        return keys;
      },
    });
    const answers = await Promise.allSettled([coalescer.ask(1), coalescer.ask(2), coalescer.ask(3)]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  });

  it('does not leave a question open when a call answers too little', async () => {
    const coalescer = new Coalescer<number, number>({ keysMax: 2, callsMax: 1, call: async () => [7] });
    const answers = await Promise.allSettled([coalescer.ask(1), coalescer.ask(2)]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });
});
