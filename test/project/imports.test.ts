import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DOORS, IO_MODULES, LAYERS, type Layer, layerOf, linterFences, NO_CLOCK_FOLDERS } from './layers.ts';
import {
  dottedName,
  PROJECT,
  packageOf,
  parseSource,
  resolveImport,
  type SourceFile,
  sourcesUnder,
  syntaxNodes,
} from './sources.ts';

const SOURCES = [...sourcesUnder('src'), ...sourcesUnder('functions')];
const OPEN_TO_ALL = ['src/limits.ts', 'src/errors.ts', 'src/version.ts'];
const CLOCKS = ['Date.now', 'Math.random', 'process.env', 'performance.now'];

function importProblems(file: SourceFile): string[] {
  const layer = layerOf(file.path);
  return file.imports.flatMap((specifier) => {
    const target = resolveImport(file.path, specifier);
    const problem = specifier.startsWith('.')
      ? projectImportProblem(file.path, layer, target)
      : packageImportProblem(layer, specifier);
    return problem === undefined ? [] : [`${file.path} imports ${specifier}: ${problem}`];
  });
}

function projectImportProblem(from: string, layer: Layer | undefined, target: string): string | undefined {
  if (OPEN_TO_ALL.includes(target)) return undefined;
  const to = layerOf(target);
  if (to === undefined) return 'not one of the layers';
  if (layer === undefined) return `${from} belongs to no layer`;
  if (to === layer) return undefined;
  const name = to.folder.replace(/^src\//, '').split('/')[0] ?? '';
  if (!layer.mayImport.includes(name)) return `${layer.folder} may not import ${to.folder}`;
  const doors = DOORS[to.folder];
  if (doors !== undefined && !doors.includes(target)) return `its doors are ${doors.join(', ')}`;
  return undefined;
}

function packageImportProblem(layer: Layer | undefined, specifier: string): string | undefined {
  const name = packageOf(specifier);
  if (!name.startsWith('@azure/') && name !== 'durable-functions') return undefined;
  const allowed = (layer?.azurePackages ?? []).some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
  return allowed ? undefined : `${layer?.folder ?? 'src'} may not import this Azure package`;
}

/** Where a file asks for the time, for chance or for the environment by itself. */
function clockUses(file: SourceFile): string[] {
  const found: string[] = [];
  for (const node of syntaxNodes(file.program)) {
    const name = dottedName(node);
    if (name !== undefined && CLOCKS.includes(name)) found.push(`${file.path}: ${name}`);
    const callee = node.type === 'NewExpression' ? dottedName(node.callee as never) : undefined;
    if (callee === 'Date' && (node.arguments as unknown[]).length === 0) found.push(`${file.path}: new Date()`);
  }
  return found;
}

describe('imports', () => {
  it('point downwards only, and Azure packages stay where they belong', () => {
    expect(SOURCES.length).toBeGreaterThan(50);
    expect(SOURCES.flatMap(importProblems)).toEqual([]);
  });

  it('of every source belong to a layer', () => {
    const homeless = SOURCES.map((file) => file.path).filter((path) => !OPEN_TO_ALL.includes(path) && !layerOf(path));
    expect(homeless).toEqual([]);
  });

  it('of the core reach no clock, chance, environment or device', () => {
    const core = SOURCES.filter(({ path }) => NO_CLOCK_FOLDERS.some((folder) => path.startsWith(`${folder}/`)));
    const devices = core.flatMap(({ path, imports }) =>
      imports.filter((name) => IO_MODULES.includes(name.replace(/^node:/, ''))).map((name) => `${path}: ${name}`),
    );
    expect(core.flatMap(clockUses)).toEqual([]);
    expect(devices).toEqual([]);
  });

  it('are fenced in the linter by the same table (npm run fences writes it)', () => {
    const fences = JSON.parse(readFileSync(join(PROJECT, 'biome.fences.json'), 'utf8'));
    expect(fences).toEqual(linterFences());
  });
});

describe('the rules themselves', () => {
  const file = (path: string, text: string): SourceFile => parseSource(path, text);

  it.each([
    ['src/hashing/a.ts', "import { b } from '../repository/b.ts';"],
    ['src/chunk-index/a.ts', "import type { b } from '@azure/storage-blob';"],
    ['src/agent/a.ts', "export * from '../chunk-index/chunk-index.ts';"],
    ['src/agent/a.ts', "const a = import('../storage/ports.ts');"],
    ['src/service/a.ts', "import { b } from '../chunk-index/router.ts';"],
    ['src/service/a.ts', "import { b } from '../local/azurite.ts';"],
    ['src/storage/memory/a.ts', "import { b } from '@azure/storage-blob';"],
    ['src/contract/a.ts', "import { b } from '../service/b.ts';"],
  ])('refuse in %s: %s', (path, text) => {
    expect(importProblems(file(path, text))).toHaveLength(1);
  });

  it('let every layer import itself, the limits and the errors', () => {
    for (const { folder } of LAYERS) {
      const up = folder.startsWith('src/') ? '../'.repeat(folder.split('/').length - 1) : '../src/';
      const text = `import './b.ts'; import '${up}limits.ts'; import '${up}errors.ts'; import '${up}version.ts';`;
      expect(importProblems(file(`${folder}/a.ts`, text))).toEqual([]);
    }
  });

  it.each(['Date.now()', 'new Date()', 'Math.random()', 'process.env.X', 'const f = Date.now'])(
    'see the clock in %s',
    (text) => {
      expect(clockUses(file('src/pending/a.ts', text))).toHaveLength(1);
    },
  );

  it('let a given time be made a Date', () => {
    expect(clockUses(file('src/pending/a.ts', 'new Date(5); new Date(text);'))).toEqual([]);
  });
});
