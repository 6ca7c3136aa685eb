/**
 * Brings `test/acceptance.md` up to date: `node scripts/acceptance.ts [--write] [notes.md …]`.
 *
 * The words of each line and the sentences of exemption in it are written by hand and kept; the tests are filled in from
 * the tests' titles. Notes add sentences, one a line: `- LS-01: why it cannot apply`. A test always wins over a sentence.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  acceptanceProblems,
  formatRow,
  formatTests,
  idsOf,
  namedTests,
  parseRow,
  parseRows,
  titlesIn,
} from '../test/project/acceptance.ts';
import { PROJECT, sourcesUnder } from '../test/project/sources.ts';

const LIST = join(PROJECT, 'test', 'acceptance.md');

function sentencesIn(files: readonly string[]): Map<string, string> {
  const sentences = new Map<string, string>();
  for (const file of files) {
    for (const [, ids = '', sentence = ''] of readFileSync(file, 'utf8').matchAll(/^- ([A-Z]{2}-[^:\n]+): (.+)$/gm)) {
      for (const id of idsOf(`${ids}:`)) sentences.set(id, sentence.trim());
    }
  }
  return sentences;
}

const args = process.argv.slice(2);
const sentences = sentencesIn(args.filter((arg) => !arg.startsWith('--')));
const titles = sourcesUnder('test')
  .filter(({ path }) => path.endsWith('.test.ts'))
  .flatMap(titlesIn);

const updated = readFileSync(LIST, 'utf8')
  .split('\n')
  .map((line) => {
    const row = parseRow(line);
    if (row === undefined) return line;
    const tests = titles.filter(({ title }) => idsOf(title).includes(row.id));
    const kept = namedTests(row.answer).length > 0 ? '' : row.answer;
    const answer = tests.length > 0 ? formatTests(tests) : (sentences.get(row.id) ?? kept);
    return formatRow({ ...row, answer });
  })
  .join('\n');

if (args.includes('--write')) writeFileSync(LIST, updated);
const problems = acceptanceProblems(parseRows(updated), titles);
for (const problem of problems) console.error(problem);
console.error(`${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
