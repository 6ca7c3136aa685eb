/** What would make a replay differ, or hang on the platform. Types cannot forbid it; reading the sources can. */

import { describe, expect, it } from 'vitest';
import { closureOf, orchestratorProblems } from '../project/orchestrator-rules.ts';
import { parseSource, sourcesUnder } from '../project/sources.ts';

const SOURCES = [...sourcesUnder('functions'), ...sourcesUnder('src')];
const ROOTS = SOURCES.filter(
  ({ path }) =>
    path.startsWith('functions/orchestrators/') ||
    ['functions/orchestration.ts', 'functions/root-groups.ts'].includes(path),
);

function problemsOf(code: string): string[] {
  return orchestratorProblems(parseSource('functions/orchestrators/example.ts', code));
}

/** In a generator with the usual context. */
function body(code: string): string {
  return `import * as df from 'durable-functions';\nexport function* example(context) {\n${code}\n}`;
}

describe('orchestrators', () => {
  it('are found, each of them', () => {
    expect(ROOTS.length).toBeGreaterThanOrEqual(7);
  });

  it.each(closureOf(ROOTS, SOURCES).map((file) => [file.path, file] as const))(
    '%s is deterministic: it uses nothing that a replay would see differently',
    (_, file) => {
      expect(orchestratorProblems(file)).toEqual([]);
    },
  );
});

describe('the rules refuse', () => {
  it.each([
    ['await', 'export async function f() { await g(); }', 'await'],
    ['await in a loop', 'export async function f() { for await (const a of b) c(a); }', 'await'],
    ['async', 'export const f = async () => 1;', 'async'],
    ['an async method', 'export class A { async f() {} }', 'async'],
    ['promises', 'export const a = new Promise(() => undefined);', 'Promise'],
    ['promises of others', 'export const a = Promise.all([]);', 'Promise.all'],
    ['the time', 'export const f = () => Date.now();', 'Date.now'],
    ['the time as a function', 'const f = Date.now;', 'Date.now'],
    ['the date of today', 'const a = new Date();', 'new Date()'],
    ['the date as a text', 'const a = Date();', 'Date'],
    ['a stopwatch', 'const a = performance.now();', 'performance.now'],
    ['chance', 'const a = Math.random();', 'Math.random'],
    ['a random id', 'const a = crypto.randomUUID();', 'crypto.randomUUID'],
    ['the environment', 'const a = process.env.X;', 'process.env'],
    ['the environment by destructuring', 'const { X } = process.env;', 'process.env'],
    ['a timer', 'setTimeout(f, 1);', 'setTimeout'],
    ['an interval', 'setInterval(f, 1);', 'setInterval'],
    ['a request', "fetch('http://x');", 'fetch'],
    ['the console', "console.log('x');", 'console.log'],
    ['a module of Node', "import { readFileSync } from 'node:fs'; readFileSync('x');", 'import of node:fs'],
    ['a module of Node without prefix', "import 'fs';", 'import of fs'],
    [
      'a package with input and output',
      "import { f } from '@azure/storage-blob'; f();",
      'import of @azure/storage-blob',
    ],
    ['a random id by import', "import { v4 } from 'uuid'; v4();", 'import of uuid'],
    ['an import at run time', "const a = import('./b.ts');", 'import()'],
    ['retries of the engine', body("yield context.df.callActivityWithRetry('a', options);"), 'callActivityWithRetry'],
    ['their options', body('const options = new df.RetryOptions(1, 2);'), 'RetryOptions'],
    ['timers of the engine', body('yield context.df.createTimer(at);'), 'createTimer'],
    ['Task.any', body('yield context.df.Task.any(tasks);'), 'Task.any'],
  ])('%s', (_, code, problem) => {
    expect(problemsOf(code).join()).toContain(problem);
  });

  const call = "context.df.callActivity('a', 1)";
  it.each([
    ['named twice', `const a = ${call}; yield context.df.Task.all([a]); yield context.df.Task.all([a]);`],
    [
      'in a list',
      `const list = xs.map((x) => ${call}); yield context.df.Task.all(list); yield context.df.Task.all(list);`,
    ],
    [
      'in two lists',
      `const a = ${call}; const l = [a]; yield context.df.Task.all(l); yield context.df.Task.all([a, b]);`,
    ],
    ['pushed', `const l = []; l.push(${call}); yield context.df.Task.all(l); yield context.df.Task.all(l);`],
    [
      'under another name',
      `const a = ${call}; const b = a; yield context.df.Task.all([a]); yield context.df.Task.all([b]);`,
    ],
    ['in a loop', `const a = ${call}; for (const x of xs) { yield context.df.Task.all([a]); }`],
    ['in a while loop', `const a = ${call}; while (more) { const l = [a]; yield context.df.Task.all(l); }`],
    ['nested', `const a = ${call}; const inner = context.df.Task.all([a]); yield context.df.Task.all([inner, a]);`],
    ['assigned later', `let a; a = ${call}; yield context.df.Task.all([a]); yield context.df.Task.all([a]);`],
  ])('a task in two compound tasks: %s', (_, code) => {
    expect(problemsOf(body(code)).join()).toContain('in two compound tasks');
  });
});

describe('the rules allow', () => {
  const call = "context.df.callActivity('a', 1)";
  it.each([
    ['the clock of the context', 'const now = context.df.currentUtcDateTime.getTime(); return new Date(now);'],
    ['a list of its own in each round', `for (const x of xs) { const l = [${call}]; yield context.df.Task.all(l); }`],
    [
      'two compound tasks of different tasks',
      `yield context.df.Task.all([${call}]); yield context.df.Task.all([${call}]);`,
    ],
    [
      'the result of a task in the next',
      `const r = yield ${call}; yield context.df.Task.all([context.df.callActivity('b', r)]); yield context.df.Task.all([context.df.callActivity('c', r)]);`,
    ],
    ['a task yielded once more by itself', `const a = ${call}; yield context.df.Task.all([a]); yield a;`],
  ])('%s', (_, code) => {
    expect(problemsOf(body(code))).toEqual([]);
  });
});
