import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareOrdinal, SortedKeys } from '../../../src/storage/memory/sorted-keys.ts';

describe('SortedKeys', () => {
  it('walks exactly the keys that were added and not deleted, in ordinal order, from any start', () => {
    const key = fc.stringMatching(/^[Aab9é😀]{0,3}$/u);
    const step = fc.record({ key, kind: fc.constantFrom('toggle', 'walk') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const keys = new SortedKeys();
        const model = new Set<string>();
        for (const { key: current, kind } of steps) {
          if (kind === 'toggle' && !model.has(current)) {
            keys.add(current);
            model.add(current);
          } else if (kind === 'toggle') {
            keys.delete(current);
            model.delete(current);
          } else {
            const expected = [...model].filter((candidate) => candidate >= current).sort(compareOrdinal);
            expect([...keys.from(current)]).toEqual(expected);
          }
        }
      }),
    );
  });
});
