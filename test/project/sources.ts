/** Reads the project's own sources for the tests of its rules: what a file imports, and every node of its syntax tree. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

export const PROJECT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface SyntaxNode {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface SourceFile {
  /** Relative to the project, with forward slashes. */
  readonly path: string;
  readonly program: SyntaxNode;
  /** Module specifiers as written, `import type` and `import()` included. */
  readonly imports: readonly string[];
  /** Those of them that remain when types are erased. */
  readonly valueImports: readonly string[];
}

/** All TypeScript files under a folder of the project, in order of path. */
export function sourcesUnder(folder: string): SourceFile[] {
  return readdirSync(join(PROJECT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(PROJECT, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
    .map((path) => parseSource(path, readFileSync(join(PROJECT, path), 'utf8')));
}

export function parseSource(path: string, text: string): SourceFile {
  const { program, module, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const imports = new Map<string, { isValue: boolean }>();
  const add = (specifier: string, isValue: boolean): void => {
    imports.set(specifier, { isValue: isValue || (imports.get(specifier)?.isValue ?? false) });
  };
  for (const { moduleRequest, entries } of module.staticImports) {
    add(moduleRequest.value, entries.length === 0 || entries.some(({ isType }) => !isType));
  }
  for (const { entries } of module.staticExports) {
    for (const { moduleRequest, isType } of entries) if (moduleRequest) add(moduleRequest.value, !isType);
  }
  for (const { moduleRequest } of module.dynamicImports) {
    // A computed specifier stays as written: no rule allows what it cannot read.
    const written = text.slice(moduleRequest.start, moduleRequest.end);
    add(/^'[^']*'$/.test(written) ? written.slice(1, -1) : written, true);
  }
  const valueImports = [...imports].filter(([, { isValue }]) => isValue).map(([specifier]) => specifier);
  return { path, program: program as unknown as SyntaxNode, imports: [...imports.keys()], valueImports };
}

/** The imported file's path when it is one of the project, else the specifier itself. */
export function resolveImport(from: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : specifier;
}

/** `@azure/storage-blob/x` → `@azure/storage-blob`. */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

export function* syntaxNodes(value: unknown): Generator<SyntaxNode> {
  if (Array.isArray(value)) {
    for (const item of value) yield* syntaxNodes(item);
  } else if (value !== null && typeof value === 'object') {
    if (typeof (value as { type?: unknown }).type === 'string') yield value as SyntaxNode;
    for (const child of Object.values(value)) yield* syntaxNodes(child);
  }
}

/** `Date.now` for the member expression, `process` for the identifier; undefined for anything longer or computed. */
export function dottedName(node: SyntaxNode): string | undefined {
  if (node.type === 'Identifier') return node.name as string;
  if (node.type !== 'MemberExpression' || node.computed === true) return undefined;
  const object = dottedName(node.object as SyntaxNode);
  return object === undefined ? undefined : `${object}.${(node.property as SyntaxNode).name as string}`;
}
