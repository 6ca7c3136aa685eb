/**
 * The acceptance list: every behaviour that the existing archive program proves of itself, one line each, with our test of
 * it or one sentence why it cannot apply to this design. `test/acceptance.md` is the list; here is what it must hold.
 *
 * A test covers a line by naming it at the start of its title: `LK-07: …`, `FT-39/40: …`, `RS-26..30: …`,
 * `SF-06, SF-07: …`.
 */

import { dottedName, type SourceFile, type SyntaxNode, syntaxNodes } from './sources.ts';

const LAST_NUMBER: Readonly<Record<string, number>> = {
  LS: 22,
  RT: 9,
  SF: 18,
  LK: 23,
  LC: 10,
  FL: 11,
  CS: 29,
  TB: 8,
  AR: 57,
  FT: 78,
  SN: 27,
  RS: 41,
};
const SCENARIOS = ['SC-1', 'SC-2', 'SC-3a', 'SC-3b', 'SC-4', 'SC-5', 'SC-6'];

/** Every line there is, in the order of the list. */
export const ACCEPTANCE_IDS: readonly string[] = Object.entries(LAST_NUMBER).flatMap(([group, last]) => [
  ...(group === 'CS' ? SCENARIOS : []),
  ...Array.from({ length: last }, (_, index) => lineId(group, index + 1)),
]);

/** Lines about not losing data when a run dies: no design is exempt from them. */
export const NEVER_EXEMPT: readonly string[] = [
  ...Array.from({ length: 11 }, (_, index) => lineId('CS', index + 16)),
  ...Array.from({ length: 11 }, (_, index) => lineId('AR', index + 1)),
];

function lineId(group: string, number: number): string {
  return `${group}-${String(number).padStart(2, '0')}`;
}

export interface TestTitle {
  readonly file: string;
  readonly title: string;
}

export interface AcceptanceRow {
  readonly id: string;
  readonly demand: string;
  /** The tests, `file › title`; or a sentence. */
  readonly answer: string;
}

/** The lines a title names: whatever stands before its first colon, when that is nothing but ids. */
export function idsOf(title: string): string[] {
  const head = /^((?:[A-Z]{2}-\d+[ab]?|\d+[ab]?|[\s,/]|\.\.\.?|[…–]|and)+):/.exec(title)?.[1];
  if (head === undefined) return [];
  const ids: string[] = [];
  let group = '';
  let previous: number | undefined;
  let range = false;
  for (const [token, prefix, digits, letter] of head.matchAll(
    /([A-Z]{2})-(\d+)([ab]?)|(?:\.\.\.?|[…–])|\b(\d+)([ab]?)/g,
  )) {
    if (/^[.…–]/.test(token)) {
      range = true;
      continue;
    }
    const bare = /^(\d+)([ab]?)$/.exec(token);
    group = prefix ?? group;
    const number = Number(digits ?? bare?.[1]);
    const suffix = letter ?? bare?.[2] ?? '';
    for (let each = range && previous !== undefined ? previous + 1 : number; each <= number; each++) {
      ids.push(group === 'SC' ? `SC-${each}${suffix}` : lineId(group, each));
    }
    previous = number;
    range = false;
  }
  return ids;
}

/** Titles of `it` and `test` calls, `it.each` included; titles that are put together at run time are not seen. */
export function titlesIn(file: SourceFile): TestTitle[] {
  const titles: TestTitle[] = [];
  for (const node of syntaxNodes(file.program)) {
    if (node.type !== 'CallExpression' || !isTestFunction(node.callee as SyntaxNode)) continue;
    const title = textOf((node.arguments as SyntaxNode[])[0]);
    if (title !== undefined) titles.push({ file: file.path, title });
  }
  return titles;
}

function isTestFunction(callee: SyntaxNode): boolean {
  if (callee.type === 'CallExpression') return isTestFunction(callee.callee as SyntaxNode);
  return /^(?:it|test)(?:\.each|\.prop|\.concurrent|\.sequential)?$/.test(dottedName(callee) ?? '');
}

function textOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type !== 'TemplateLiteral' || (node.expressions as unknown[]).length > 0) return undefined;
  return (node.quasis as { value: { cooked: string } }[])[0]?.value.cooked;
}

/** The rows of `test/acceptance.md`. */
export function parseRows(markdown: string): AcceptanceRow[] {
  return markdown.split('\n').flatMap((line) => parseRow(line) ?? []);
}

/** Undefined for a line that is no row of the list. */
export function parseRow(line: string): AcceptanceRow | undefined {
  const [before, id, demand, answer, after] = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
  if (before !== '' || after !== '' || id === undefined || !/^[A-Z]{2}-\d+[ab]?$/.test(id)) return undefined;
  return { id, demand: demand ?? '', answer: answer ?? '' };
}

export function formatRow({ id, demand, answer }: AcceptanceRow): string {
  const [left, right] = [demand, answer].map((cell) => cell.replaceAll('|', '\\|'));
  return `| ${id} | ${left} | ${right} |`;
}

/** `file › title`, more than one parted by `<br>`. */
export function formatTests(titles: readonly TestTitle[]): string {
  return titles.map(({ file, title }) => `\`${file}\` › ${title}`).join('<br>');
}

/** The tests an answer names; empty when it is a sentence. */
export function namedTests(answer: string): TestTitle[] {
  return answer.split('<br>').flatMap((part) => {
    const [, file, title] = /^`([^`]+)` › (.+)$/.exec(part) ?? [];
    return file === undefined || title === undefined ? [] : [{ file, title }];
  });
}

/** Everything that is wrong with the list, one line each. */
export function acceptanceProblems(rows: readonly AcceptanceRow[], titles: readonly TestTitle[]): string[] {
  const problems: string[] = [];
  const existing = new Set(titles.map(({ file, title }) => `${file}\n${title}`));
  const seen = new Set<string>();
  for (const { id, demand, answer } of rows) {
    if (!ACCEPTANCE_IDS.includes(id)) problems.push(`${id} is not a line of the list`);
    if (seen.has(id)) problems.push(`${id} stands twice`);
    seen.add(id);
    if (demand === '') problems.push(`${id} does not say what it demands`);
    const tests = namedTests(answer);
    for (const { file, title } of tests) {
      if (!existing.has(`${file}\n${title}`))
        problems.push(`${id} names a test that does not exist: ${file} › ${title}`);
      else if (!idsOf(title).includes(id)) problems.push(`${id} names a test whose title does not name it: ${title}`);
    }
    if (tests.length === 0 && !/^\S+ .+\.$/.test(answer)) problems.push(`${id} has neither a test nor a sentence`);
    if (tests.length === 0 && NEVER_EXEMPT.includes(id)) problems.push(`${id} may not be exempt`);
  }
  for (const id of ACCEPTANCE_IDS) if (!seen.has(id)) problems.push(`${id} is missing`);
  for (const { file, title } of titles) {
    for (const id of idsOf(title)) {
      if (!ACCEPTANCE_IDS.includes(id)) problems.push(`${file} names ${id}, which is not a line of the list: ${title}`);
    }
  }
  return problems;
}
