import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { PROJECT } from './sources.ts';

const text = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const json = (path: string): Record<string, unknown> => JSON.parse(text(path));

describe('package.json', () => {
  it('has the version that the program says', () => {
    expect(json('package.json').version).toBe(VERSION);
    expect(json('package-lock.json').version).toBe(VERSION);
  });

  it('pins every dependency, so that a fresh install is what was tested', () => {
    const { dependencies, devDependencies } = json('package.json') as Record<string, Record<string, string>>;
    const versions = Object.entries({ ...dependencies, ...devDependencies });
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  it('asks for the Node that the start wrapper asks for', async () => {
    const { isNewEnough } = await import('../../bin/node-runtime.mjs');
    const least = String((json('package.json').engines as { node: string }).node).replace('>=', '');
    expect(isNewEnough(`${least}.0`)).toBe(true);
    expect(isNewEnough('22.14.9')).toBe(false);
    expect(isNewEnough('20.99.0')).toBe(false);
    expect(isNewEnough('24.0.0')).toBe(true);
  });
});

describe('the documentation', () => {
  it.each([
    'README.md',
    'CONTRIBUTING.md',
    'docs/README.md',
    'docs/guide/getting-started.md',
    'docs/guide/embedded-service.md',
  ])('%s links to files that exist', (path) => {
    const folder = join(PROJECT, path, '..');
    const links = [...text(path).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target]) => String(target));
    expect(links.filter((target) => !existsSync(join(folder, target)))).toEqual([]);
  });

  it('names only npm scripts that exist', () => {
    const { scripts } = json('package.json') as Record<string, Record<string, string>>;
    const named = ['README.md', 'CONTRIBUTING.md', 'docs/guide/getting-started.md'].flatMap((path) =>
      [...text(path).matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => String(name)),
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => scripts?.[name] === undefined)).toEqual([]);
  });
});
