/**
 * kill -9 before and after a commit, then another host on the same journal: the result must be right each time. Some
 * boundaries by default; every one of them with `npm run test:host:crash`, which says how many there were
 * (`LOCAL_HOST_CRASH_ALL=100` begins with the hundredth).
 */

import { rm } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { type LocalSample, startSampleForFile, temporaryDirectory } from './harness.ts';

interface Scenario {
  readonly name: string;
  readonly input: unknown;
  readonly output: number;
  /** Commits it takes at the very least, so that a crash there is certain: its start, each activity, each result's use. */
  readonly commitsMin: number;
  readonly sampled: readonly string[];
}

const SCENARIOS: Record<string, Scenario> = {
  'a fan-out of 256': {
    name: 'fanOut',
    input: { count: 256 },
    output: (255 * 256) / 2,
    commitsMin: 1 + 256 + 2,
    sampled: ['before:1', 'after:2', 'before:60', 'after:257'],
  },
  'two sub-orchestrations of 4': {
    name: 'tree',
    input: { children: 2, count: 4 },
    output: 12,
    commitsMin: 1 + 8 + 5,
    sampled: ['after:1', 'before:3', 'after:9', 'before:12', 'after:3:activity'],
  },
};
/** The first of all boundaries to take; undefined: only those that are sampled. */
const FIRST = process.env.LOCAL_HOST_CRASH_ALL === undefined ? undefined : Number(process.env.LOCAL_HOST_CRASH_ALL);
const LANES = 2;
const FULL_RUN_LIMIT_MS = 2 * 60 * 60_000;
const SAID_EVERY = 25;

/** Whether the host died there; else the work has ended before. */
async function crashesAndEndsWell(scenario: Scenario, boundary: string): Promise<boolean> {
  const stateDirectory = await temporaryDirectory();
  const hosts: LocalSample[] = [];
  const begin = async (settings: Record<string, string>): Promise<LocalSample> => {
    const sample = await startSampleForFile({ stateDirectory, settings });
    hosts.push(sample);
    return sample;
  };
  const { name, input, output } = scenario;
  const start = { input, instanceId: 'work' };
  const rightEnd = { runtimeStatus: 'Completed', output };
  try {
    const first = await begin({ LOCAL_HOST_CRASH: boundary });
    await first.client('start', name, start).catch(() => undefined);
    const end = await Promise.race([first.host.exited, first.ended('work', 60_000).catch(() => first.host.exited)]);
    if (end !== null) {
      expect(end, boundary).toMatchObject(rightEnd);
      return false;
    }
    const second = await begin({});
    // Whoever got no answer asks again, as a client of Azure would: only a lost start may start anything.
    const again = await second.client('start', name, start);
    if (boundary !== 'before:1') expect(again.error ?? 'it had ended').toMatch(/already exists|it had ended/);
    expect(await second.ended('work', 60_000), boundary).toMatchObject(rightEnd);
    return true;
  } finally {
    await Promise.all(hosts.map(({ host }) => host.kill()));
    await rm(stateDirectory, { recursive: true, force: true });
  }
}

describe.runIf(FIRST === undefined).each(Object.entries(SCENARIOS))('a crash at a commit of %s', (_, scenario) => {
  it.each(scenario.sampled)('%s ends well', async (boundary) => {
    expect(await crashesAndEndsWell(scenario, boundary)).toBe(true);
  });
});

const EVERY = Object.entries(SCENARIOS).map(([title, scenario]) => ({ title, scenario, crashes: 0 }));
const WALKS = ['before', 'after'].flatMap((phase) => Array.from({ length: LANES }, (_, lane) => ({ phase, lane })));

describe.runIf(FIRST !== undefined).each(EVERY)('a crash at each commit of $title', (every) => {
  const { title, scenario } = every;
  afterAll(() => console.log(`${title}: ${every.crashes} crashes, each with the right result`));

  it.concurrent.each(WALKS)(
    '$phase it ends well (walk $lane)',
    async ({ phase, lane }) => {
      let count = (FIRST ?? 1) + lane;
      for (; await crashesAndEndsWell(scenario, `${phase}:${count}`); count += LANES) {
        every.crashes += 1;
        if (every.crashes % SAID_EVERY === 0)
          console.log(`${title}: ${every.crashes} crashes so far, ${phase}:${count}`);
      }
      expect(count).toBeGreaterThan(scenario.commitsMin);
    },
    FULL_RUN_LIMIT_MS,
  );
});
