import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { registeredSteps } from '../../functions/activity-step.ts';
import { registeredRoutes } from '../../functions/http-route.ts';
import { ORCHESTRATOR } from '../../functions/orchestration.ts';
import { ROUTES } from '../../src/contract/routes.ts';
import { VERSION } from '../../src/version.ts';
import { registrations, triggerOf } from './support/functions-core.ts';

/** What the platform loads, by the glob in package.json. */
const modules = ['http', 'orchestrators', 'activities', 'triggers'].flatMap((folder) =>
  readdirSync(new URL(`../../functions/${folder}`, import.meta.url)).map((name) => `../../functions/${folder}/${name}`),
);
for (const path of modules) {
  await import(path);
}

function ofType(type: string): string[] {
  return registrations.filter((each) => triggerOf(each).type === type).map((each) => each.name);
}

describe('the function app', () => {
  it('registers every route of the contract, with a key but for liveness', () => {
    expect([...registeredRoutes.keys()].sort()).toEqual(Object.keys(ROUTES).sort());
    for (const [name, route] of Object.entries(ROUTES)) {
      const registered = registrations.find((each) => each.name === `api-${name}`);
      const trigger = registered === undefined ? undefined : triggerOf(registered);
      expect(trigger, name).toMatchObject({
        type: 'httpTrigger',
        route: route.path,
        methods: [route.method],
        authLevel: name === 'health' ? 'anonymous' : 'function',
      });
    }
  });

  it('registers every orchestrator and every step that one of them calls: an unknown name would hang for ever', () => {
    expect(ofType('orchestrationTrigger').sort()).toEqual(Object.values(ORCHESTRATOR).sort());
    expect(ofType('activityTrigger').sort()).toEqual([...registeredSteps.keys()].sort());
    const sources = modules.filter((path) => path.includes('/orchestrators/'));
    const texts = [...sources, '../../functions/root-groups.ts'].map((path) =>
      readFileSync(new URL(path, import.meta.url), 'utf8'),
    );
    const called = texts.flatMap((text) =>
      [...text.matchAll(/(?:perform\(\s*context,[^,]+,|callActivity\()\s*'(\w+)'/g)].map(([, name = '']) => name),
    );
    expect(called.length).toBeGreaterThan(10);
    expect(called.filter((name) => !registeredSteps.has(name))).toEqual([]);
  });

  it('listens to the queue of jobs and to timers', () => {
    expect(ofType('queueTrigger')).toEqual(['wake-on-message']);
    const schedules = registrations
      .map(triggerOf)
      .filter((trigger) => trigger.type === 'timerTrigger')
      .map((trigger) => trigger.schedule);
    expect(schedules).toEqual(expect.arrayContaining(['0 * * * * *', '0 17 * * * *']));
  });

  it('keeps the version in one place and its glob in another', () => {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(manifest.version).toBe(VERSION);
    expect(manifest.main).toBe('dist/functions/{http,orchestrators,activities,triggers}/*.js');
    expect(existsSync(new URL('../../host.json', import.meta.url))).toBe(true);
  });
});
