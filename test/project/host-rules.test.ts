/** The table of the local host's rules names tests: each of them must be there. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT, parseSource, type SyntaxNode, syntaxNodes } from './sources.ts';

const DESIGN = readFileSync(join(PROJECT, 'docs/design/local-host.md'), 'utf8');
const FOLDERS: Readonly<Record<string, string>> = {
  conformance: 'test/conformance/host',
  local: 'test/local/host',
};

interface Rule {
  readonly number: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

function rulesOf(markdown: string): Rule[] {
  return [...markdown.matchAll(/^\| ([A-Z]\d+) \|.*\| ([^|]*) \|$/gm)].map(([, number = '', tests = '']) => ({
    number,
    tests: [...tests.matchAll(/`([\w-]+)\/([\w-]+): ([^`]+)`/g)].map(([, area = '', file = '', title = '']) => ({
      file: testFile(`${FOLDERS[area] ?? `test/${area}`}/${file}`),
      title,
    })),
  }));
}

function testFile(path: string): string {
  const azurite = `${path}.azurite.test.ts`;
  return existsSync(join(PROJECT, azurite)) ? azurite : `${path}.test.ts`;
}

/** The first argument of everything like `it('…')`, `describe.each(…)('…')`. */
function titlesIn(file: string): Set<string> {
  if (!existsSync(join(PROJECT, file))) return new Set();
  const titles = new Set<string>();
  for (const node of syntaxNodes(parseSource(file, readFileSync(join(PROJECT, file), 'utf8')).program)) {
    const [first] = node.type === 'CallExpression' ? (node.arguments as SyntaxNode[]) : [];
    if (first?.type === 'Literal' && typeof first.value === 'string') titles.add(first.value);
  }
  return titles;
}

describe('the rules of the local host', () => {
  const rules = rulesOf(DESIGN);

  it('are numbered once each, in order', () => {
    expect(rules.length).toBeGreaterThan(80);
    const numbers = rules.map(({ number }) => number);
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const letter of new Set(numbers.map((number) => number[0]))) {
      const own = numbers.filter((number) => number[0] === letter);
      expect(own).toEqual(own.map((_, index) => `${letter}${index + 1}`));
    }
  });

  it('have tests, and each of these exists', () => {
    expect(rules.filter(({ tests }) => tests.length === 0).map(({ number }) => number)).toEqual([]);
    const missing = rules.flatMap(({ number, tests }) =>
      tests
        .filter(({ file, title }) => !titlesIn(file).has(title))
        .map(({ file, title }) => `${number}: ${file}: ${title}`),
    );
    expect(missing).toEqual([]);
  });
});
