import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  ACCEPTANCE_IDS,
  type AcceptanceRow,
  acceptanceProblems,
  formatRow,
  formatTests,
  idsOf,
  NEVER_EXEMPT,
  parseRows,
  titlesIn,
} from './acceptance.ts';
import { PROJECT, parseSource, sourcesUnder } from './sources.ts';

describe('test/acceptance.md', () => {
  it('answers every line, with a test that exists or one sentence (npm run acceptance writes it)', () => {
    const rows = parseRows(readFileSync(join(PROJECT, 'test', 'acceptance.md'), 'utf8'));
    const titles = sourcesUnder('test')
      .filter(({ path }) => path.endsWith('.test.ts'))
      .flatMap(titlesIn);
    expect(acceptanceProblems(rows, titles)).toEqual([]);
  });
});

describe('the rules of the list', () => {
  const title = { file: 'test/a.test.ts', title: 'AR-01: a crash' };
  const complete: AcceptanceRow[] = ACCEPTANCE_IDS.map((id) => ({
    id,
    demand: 'something',
    answer: NEVER_EXEMPT.includes(id) ? formatTests([{ ...title, title: `${id}: a crash` }]) : 'It has no such thing.',
  }));
  const titles = NEVER_EXEMPT.map((id) => ({ ...title, title: `${id}: a crash` }));
  const changed = (id: string, change: Partial<AcceptanceRow>): AcceptanceRow[] =>
    complete.map((row) => (row.id === id ? { ...row, ...change } : row));

  it('hold for a complete list', () => {
    expect(ACCEPTANCE_IDS).toHaveLength(340);
    expect(acceptanceProblems(complete, titles)).toEqual([]);
  });

  it.each([
    ['a missing line', complete.filter(({ id }) => id !== 'LK-07'), 'LK-07 is missing'],
    ['a line without an answer', changed('LK-07', { answer: '' }), 'LK-07 has neither a test nor a sentence'],
    ['an answer that is no sentence', changed('LK-07', { answer: 'n/a' }), 'LK-07 has neither a test nor a sentence'],
    [
      'an exempted line of those about crashes',
      changed('CS-20', { answer: 'Not here, no.' }),
      'CS-20 may not be exempt',
    ],
    ['a test that is gone', changed('AR-02', { answer: '`test/b.test.ts` › AR-02: a crash' }), 'AR-02 names a test'],
    ['a test of another line', changed('AR-02', { answer: formatTests([title]) }), 'AR-02 names a test whose title'],
    ['a line that says nothing', changed('RT-01', { demand: '' }), 'RT-01 does not say what it demands'],
    ['a line that stands twice', [...complete, ...complete.slice(0, 1)], 'LS-01 stands twice'],
  ])('name %s', (_what, rows, problem) => {
    expect(acceptanceProblems(rows, titles)).toEqual([expect.stringContaining(problem)]);
  });

  it('name a test that claims a line which does not exist', () => {
    const stray = { file: 'test/a.test.ts', title: 'LK-24: more' };
    expect(acceptanceProblems(complete, [...titles, stray])).toEqual([expect.stringContaining('LK-24')]);
  });

  it('survive being written and read', () => {
    const row = { id: 'SC-3a', demand: 'this | that', answer: '`test/a.test.ts` › SC-3a: a | b' };
    expect(parseRows(`head\n${formatRow(row)}\n`)).toEqual([row]);
  });
});

describe('titles', () => {
  it.each([
    ['LK-07: each once', ['LK-07']],
    ['FT-39/40: twice', ['FT-39', 'FT-40']],
    ['SF-06, SF-07: large', ['SF-06', 'SF-07']],
    ['SF-06 and SF-07: large', ['SF-06', 'SF-07']],
    ['RS-26..30: routes', ['RS-26', 'RS-27', 'RS-28', 'RS-29', 'RS-30']],
    ['RS-26…28, RS-31: routes', ['RS-26', 'RS-27', 'RS-28', 'RS-31']],
    ['SC-3a, SC-3b: another machine', ['SC-3a', 'SC-3b']],
    ['invariant 4: leaves first', []],
    ['no id here: LK-07', []],
    ['12 files: fine', []],
  ])('%s', (title, ids) => {
    expect(idsOf(title)).toEqual(ids);
  });

  it('are found in it, test and it.each, and nowhere else', () => {
    const text = `it('a', f); test(\`b\`, f); it.each([1])('c', f); describe('d', f); it(\`e\${x}\`, f); it.each\`t\`('f', f);`;
    expect(titlesIn(parseSource('test/x.test.ts', text)).map(({ title }) => title)).toEqual(['a', 'b', 'c']);
  });
});
