// First, so that the library finds a host when it registers.
import './library.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as df from 'durable-functions';
import { beforeAll, describe, expect, it } from 'vitest';
import { ORCHESTRATOR } from '../../functions/orchestration.ts';
import { completeRun } from '../../functions/orchestrators/complete-run.ts';
import type { Action } from '../../src/local/host/durable/actions.ts';
import { expectSameActions, OrchestratorChangedError, type RecordedHistory } from './replay-history.ts';

const FOLDER = join(import.meta.dirname, 'histories');
const FILES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.json'))
  .sort();

function read(file: string): RecordedHistory {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as RecordedHistory;
}

function defaultVersion(): string {
  const text = readFileSync(join(import.meta.dirname, '..', '..', 'host.json'), 'utf8');
  return JSON.parse(text).extensions.durableTask.defaultVersion;
}

describe('recorded histories', () => {
  it.each(FILES)('%s: the orchestrator of today asks for the same', async (file) => {
    await expectSameActions(read(file));
  });

  it('are there for each orchestrator in its present version', () => {
    const names = FILES.filter((file) => file.startsWith(defaultVersion())).map((file) => read(file).name);
    expect([...new Set(names)].sort()).toEqual(Object.values(ORCHESTRATOR).sort());
    for (const file of FILES) expect(read(file).version).toBe(file.split(/[/\\]/)[0]);
  });

  it('hold no path, address or secret of the machine they were recorded on', () => {
    for (const file of FILES) {
      const text = readFileSync(join(FOLDER, file), 'utf8');
      expect(text).not.toMatch(
        /https?:\/\/|127\.0\.0\.1|localhost|AccountKey|sig=|\/(?:tmp|home|root|Users)\/|[A-Z]:\\/,
      );
    }
  });
});

describe('a change is found', () => {
  const recorded = read('1/completeRun-publishes.json');

  beforeAll(() => {
    df.app.orchestration('asksForMore', function* (context) {
      yield context.df.callActivity('somethingNew', {});
      return yield* completeRun(context);
    });
    df.app.orchestration('asksForMoreAtTheEnd', function* (context) {
      const output = yield* completeRun(context);
      yield context.df.callActivity('somethingNew', {});
      return output;
    });
    df.app.orchestration('endsOtherwise', function* (context) {
      yield* completeRun(context);
      return 'otherwise';
    });
    df.app.orchestration('asksForLess', function* (context) {
      return (yield context.df.callActivity('planCompletion', context.df.getInput())) as unknown;
    });
  });

  async function messageOf(changed: RecordedHistory, name?: string): Promise<string> {
    const error = await expectSameActions(changed, name).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(OrchestratorChangedError);
    return (error as Error).message;
  }

  it.each([
    [
      'asksForMore',
      "scheduled activity 'planCompletion' with number 0, but the current replay scheduled activity 'some",
    ],
    ['asksForMoreAtTheEnd', 'action 14 was nothing, and is now callActivity somethingNew {}'],
    ['endsOtherwise', 'it ended with {"kind":"returned","output":null}, and ends now with'],
    ['asksForLess', 'but the current replay scheduled nothing there'],
  ])('in an orchestrator that %s, and the message says what to do', async (name, what) => {
    const message = await messageOf(recorded, name);
    expect(message).toContain('The orchestrator "completeRun" has changed');
    expect(message).toContain(what);
    expect(message).toContain('Give the change a version: docs/decisions/0006-orchestrators-are-versioned.md');
  });

  it('in the input of one of many tasks', async () => {
    const text = JSON.stringify(recorded.actions).replace('"step":"settleRoot"', '"step":"settleAll"');
    const actions = JSON.parse(text) as Action[];
    const message = await messageOf({ ...recorded, actions });
    expect(message).toMatch(/in action \d+, action 1 was callSubOrchestrator rootGroup .*settleAll.*settleRoot/);
  });

  it('in what was scheduled', async () => {
    const text = JSON.stringify(recorded.history).replace('"Name":"publishSnapshot"', '"Name":"publishTwice"');
    const message = await messageOf({ ...recorded, history: JSON.parse(text) });
    expect(message).toContain("an earlier execution scheduled activity 'publishTwice'");
    expect(message).toContain("the current replay scheduled activity 'publishSnapshot'");
  });
});
