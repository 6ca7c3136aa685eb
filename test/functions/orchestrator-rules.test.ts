import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What would make a replay differ, or hang on the platform. Types cannot forbid it; reading the sources can. */
const FORBIDDEN: readonly (readonly [string, RegExp])[] = [
  ['await', /\bawait\b/],
  ['the clock', /\bDate\.now\b|new Date\(\)/],
  ['randomness', /Math\.random|randomUUID|node:crypto/],
  ['timers', /setTimeout|setInterval|createTimer/],
  ['the environment', /process\./],
  ['retries of the engine', /WithRetry|RetryOptions|withRetry/],
  ['Task.any', /Task\.any/],
  ['input and output', /node:fs|fetch\(|serviceOfProcess/],
];

const folder = join(import.meta.dirname, '..', '..', 'functions');
const sources = [
  'orchestration.ts',
  'root-groups.ts',
  ...readdirSync(join(folder, 'orchestrators')).map((name) => `orchestrators/${name}`),
];

describe('orchestrators', () => {
  it.each(sources)('%s is deterministic: it uses nothing that a replay would see differently', (source) => {
    const text = readFileSync(join(folder, source), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    const found = FORBIDDEN.filter(([, pattern]) => pattern.test(text)).map(([what]) => what);
    expect(found).toEqual([]);
  });
});
