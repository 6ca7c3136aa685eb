import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JOURNAL_COMPACT_BYTES } from '../../../src/limits.ts';
import { EventType, type HistoryEvent } from '../../../src/local/host/durable/history.ts';
import { HubState, type Operation } from '../../../src/local/host/durable/hub-state.ts';
import { Journal } from '../../../src/local/host/durable/journal.ts';
import { newInstance } from '../../../src/local/host/durable/transaction.ts';
import { temporaryDirectory } from './harness.ts';

const NOW = '2026-01-01T00:00:00.000Z';
const IDS = ['a', 'b', 'c'];
const instanceId = fc.constantFrom(...IDS);
const id = fc.integer({ min: 1, max: 20 });

function raised(input: string): HistoryEvent {
  return { EventType: EventType.EventRaised, EventId: -1, Timestamp: NOW, Name: 'e', Input: input };
}

const operation: fc.Arbitrary<Operation> = fc.oneof(
  instanceId.map((name): Operation => {
    const row = newInstance({ instanceId: name, name: 'f', version: '', input: '{"ä":1}', parent: null, now: NOW });
    return { op: 'create', row };
  }),
  fc.record({ name: instanceId, status: fc.constantFrom('Running', 'Completed', 'Suspended') }).map(
    ({ name, status }): Operation => ({
      op: 'update',
      instanceId: name,
      changes: { runtimeStatus: status } as object,
    }),
  ),
  fc
    .record({ name: instanceId, text: fc.string() })
    .map(({ name, text }): Operation => ({ op: 'history', instanceId: name, events: [raised(JSON.stringify(text))] })),
  instanceId.map((name): Operation => ({ op: 'forget', instanceId: name })),
  instanceId.map((name): Operation => ({ op: 'purge', instanceId: name })),
  fc.record({ name: instanceId, number: id }).map(
    ({ name, number }): Operation => ({
      op: 'send',
      message: { id: number, instanceId: name, executionId: null, event: raised('1') },
    }),
  ),
  fc
    .record({ name: instanceId, ids: fc.array(id) })
    .map(({ name, ids }): Operation => ({ op: 'consume', instanceId: name, ids })),
  fc.record({ name: instanceId, number: id }).map(
    ({ name, number }): Operation => ({
      op: 'schedule',
      task: { id: number, instanceId: name, executionId: 'x', number, name: 'act', input: { a: [1] } },
    }),
  ),
  id.map((taskId): Operation => ({ op: 'done', taskId })),
  fc.constant<Operation>({
    op: 'timer',
    name: 't',
    status: { expression: '* * * * *', last: null, next: NOW, lastUpdated: NOW },
  }),
);
const transactions = fc.array(fc.array(operation, { minLength: 1, maxLength: 4 }), { maxLength: 30 });

function contents(state: HubState): unknown {
  return JSON.parse(JSON.stringify([[...state.instances], [...state.activities], [...state.timers]]));
}

function write(directory: string, all: readonly Operation[][]): HubState {
  const state = new HubState();
  const journal = Journal.open(directory, state);
  for (const operations of all) {
    for (const entry of operations) state.apply(entry);
    journal.append([JSON.stringify(operations)]);
  }
  journal.close();
  return state;
}

function reopen(directory: string): HubState {
  const state = new HubState();
  Journal.open(directory, state).close();
  return state;
}

describe('the journal', () => {
  it('gives back the same state, also after the compaction of a second start', async () => {
    await fc.assert(
      fc.asyncProperty(transactions, async (all) => {
        const directory = await temporaryDirectory();
        const state = write(directory, all);
        for (let start = 0; start < 2; start += 1) {
          const again = reopen(directory);
          expect(contents(again)).toEqual(contents(state));
          expect(again.newId()).toBeGreaterThanOrEqual(state.newId() - 1 - start);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('cut anywhere gives the state of a whole number of transactions', async () => {
    await fc.assert(
      fc.asyncProperty(transactions, fc.double({ min: 0, max: 1, noNaN: true }), async (all, share) => {
        const directory = await temporaryDirectory();
        write(directory, all);
        const path = join(directory, 'journal.jsonl');
        const bytes = await readFile(path);
        await writeFile(path, bytes.subarray(0, Math.floor(bytes.length * share)));
        const found = contents(reopen(directory));
        const states = all.map((_, count) => count).concat(all.length);
        const possible = states.map((count) => {
          const state = new HubState();
          for (const entry of all.slice(0, count).flat()) state.apply(entry);
          return contents(state);
        });
        expect(possible).toContainEqual(found);
      }),
      { numRuns: 40 },
    );
  });

  it('never gives out an id twice', async () => {
    const directory = await temporaryDirectory();
    const state = write(directory, []);
    state.apply({
      op: 'create',
      row: newInstance({ instanceId: 'a', name: 'f', version: '', input: null, parent: null, now: NOW }),
    });
    const message = { id: 41, instanceId: 'a', executionId: null, event: raised('1') };
    const journal = Journal.open(directory, state);
    journal.append([JSON.stringify([{ op: 'send', message }])]);
    journal.append([JSON.stringify([{ op: 'consume', instanceId: 'a', ids: [41] }])]);
    journal.close();
    expect(reopen(directory).newId()).toBe(42);
    expect(reopen(directory).newId()).toBe(42);
  });

  it('is rewritten while running once it is large', async () => {
    const directory = await temporaryDirectory();
    const state = new HubState();
    const journal = Journal.open(directory, state);
    const large = 'x'.repeat(1024 * 1024);
    let largest = 0;
    for (let count = 0; count < 40; count += 1) {
      const row = newInstance({
        instanceId: 'a',
        name: 'f',
        version: '',
        input: JSON.stringify(large),
        parent: null,
        now: NOW,
      });
      const operations: Operation[] = [{ op: 'create', row }];
      state.apply({ op: 'create', row });
      journal.append([JSON.stringify(operations)]);
      largest = Math.max(largest, journal.bytes);
    }
    expect(largest).toBeLessThan(JOURNAL_COMPACT_BYTES + 2 * large.length);
    expect((await stat(join(directory, 'journal.jsonl'))).size).toBe(journal.bytes);
    journal.close();
    expect(contents(reopen(directory))).toEqual(contents(state));
  });

  it('of another version is refused, not overwritten', async () => {
    const directory = await temporaryDirectory();
    await writeFile(join(directory, 'journal.jsonl'), '{"journal":2}\n[]\n');
    expect(() => reopen(directory)).toThrow('not a journal of this version');
    expect(await readFile(join(directory, 'journal.jsonl'), 'utf8')).toBe('{"journal":2}\n[]\n');
  });
});
