/**
 * What an orchestrator, and everything that runs with it, may not hold: it runs again from the start at every step and
 * must take the same way each time, and both sides of the engine number its tasks on their own.
 */

import { builtinModules } from 'node:module';
import { dottedName, packageOf, resolveImport, type SourceFile, type SyntaxNode, syntaxNodes } from './sources.ts';

/** Timers, requests and other things that end outside the engine's sight. */
const OUTSIDE =
  /^(?:globalThis\.)?(?:fetch|setTimeout|setInterval|setImmediate|queueMicrotask|crypto|process|performance|console|Promise)(?:\.|$)/;
const CHANCE_AND_TIME = /^(?:globalThis\.)?(?:Date\.now|Math\.random)$|(?:^|\.)randomUUID$/;
/** The engine's own ways that our orchestrations do without: they hang, or make numbers diverge. */
const REFUSED_BY_DESIGN = /\.(?:call\w*WithRetry|callHttp|callEntity|signalEntity|createTimer|Task\.any)$/;
const COMPOUND = /(?:^|\.)Task\.(?:all|any)$/;
const MAKES_TASK = /\.df\.(?:call\w+|createTimer|waitForExternalEvent)$|(?:^|\.)Task\.(?:all|any)$/;
/** Packages without input or output. */
const PURE_PACKAGES = ['durable-functions'];

type Problem = string;

/** The files and all they import, types aside. */
export function closureOf(roots: readonly SourceFile[], all: readonly SourceFile[]): SourceFile[] {
  const byPath = new Map(all.map((file) => [file.path, file]));
  const closure = new Set(roots);
  for (const file of closure) {
    for (const specifier of file.valueImports) {
      const imported = byPath.get(resolveImport(file.path, specifier));
      if (imported !== undefined) closure.add(imported);
    }
  }
  return [...closure];
}

export function orchestratorProblems(file: SourceFile): Problem[] {
  const found = new Set<Problem>();
  for (const specifier of file.valueImports) {
    if (specifier.startsWith('node:') || builtinModules.includes(specifier)) found.add(`import of ${specifier}`);
    else if (!specifier.startsWith('.') && !PURE_PACKAGES.includes(packageOf(specifier))) {
      found.add(`import of ${specifier}`);
    }
  }
  for (const node of syntaxNodes(file.program)) for (const problem of nodeProblems(node)) found.add(problem);
  for (const task of sharedTasks(file.program)) found.add(`the task ${task} in two compound tasks`);
  return [...found].map((problem) => `${file.path}: ${problem}`);
}

function* nodeProblems(node: SyntaxNode): Generator<Problem> {
  if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await === true)) yield 'await';
  if (isFunction(node) && node.async === true) yield 'async';
  if (node.type === 'ImportExpression') yield 'import()';
  if (node.type === 'NewExpression') {
    const callee = dottedName(node.callee as SyntaxNode);
    if (callee === 'Date' && (node.arguments as unknown[]).length === 0) yield 'new Date()';
    if (callee === 'Promise') yield 'Promise';
    if (callee?.endsWith('RetryOptions') === true) yield 'RetryOptions';
  }
  if (node.type === 'CallExpression') {
    const callee = dottedName(node.callee as SyntaxNode);
    if (callee === undefined) return;
    if (callee === 'Date' || OUTSIDE.test(callee) || REFUSED_BY_DESIGN.test(callee)) yield callee;
  }
  if (node.type === 'MemberExpression') {
    const name = dottedName(node);
    if (name !== undefined && (CHANCE_AND_TIME.test(name) || OUTSIDE.test(name))) yield name;
  }
}

/** Variables with a task in them that end up in more than one compound task, or in one that is made again in a loop. */
function sharedTasks(program: SyntaxNode): string[] {
  const shared = new Set<string>();
  for (const node of syntaxNodes(program)) {
    if (isFunction(node)) for (const name of sharedTasksOf(node)) shared.add(name);
  }
  return [...shared];
}

interface Compound {
  readonly names: ReadonlySet<string>;
  readonly loops: readonly SyntaxNode[];
}

function sharedTasksOf(fn: SyntaxNode): string[] {
  const holders = taskHolders(fn);
  const declaredIn = new Map<string, readonly SyntaxNode[]>();
  const compounds: Compound[] = [];
  walk(fn.body, [], (node, loops) => {
    if (node.type === 'VariableDeclarator') {
      for (const name of identifiersIn(node.id)) declaredIn.set(name, loops);
    }
    if (node.type !== 'CallExpression' || !COMPOUND.test(dottedName(node.callee as SyntaxNode) ?? '')) return;
    const names = new Set([...identifiersIn(node.arguments)].flatMap((name) => [...(holders.get(name) ?? [])]));
    compounds.push({ names, loops });
  });
  const seen = new Set<string>();
  const shared: string[] = [];
  for (const { names, loops } of compounds) {
    for (const name of names) {
      const isMadeBeforeTheLoop = loops.some((loop) => !(declaredIn.get(name) ?? []).includes(loop));
      if (seen.has(name) || isMadeBeforeTheLoop) shared.push(name);
      seen.add(name);
    }
  }
  return shared;
}

/** For each variable that holds tasks, the variables whose tasks these are: itself, and those it was filled from. */
function taskHolders(fn: SyntaxNode): Map<string, Set<string>> {
  const fills: [holder: string, from: SyntaxNode][] = [];
  walk(fn.body, [], (node) => {
    if (node.type === 'VariableDeclarator' && node.init !== null) {
      for (const name of identifiersIn(node.id)) fills.push([name, node.init as SyntaxNode]);
    }
    if (node.type === 'AssignmentExpression') {
      for (const name of identifiersIn(node.left)) fills.push([name, node.right as SyntaxNode]);
    }
    if (
      node.type === 'CallExpression' &&
      /\.(?:push|unshift|set|add)$/.test(dottedName(node.callee as SyntaxNode) ?? '')
    ) {
      const name = (dottedName(node.callee as SyntaxNode) ?? '').split('.')[0] ?? '';
      for (const argument of node.arguments as SyntaxNode[]) fills.push([name, argument]);
    }
  });
  const holders = new Map<string, Set<string>>();
  // Twice, so that an alias of an alias is seen whatever the order of the statements.
  for (const [name, from] of [...fills, ...fills]) {
    if (isYield(from)) continue;
    const held = new Set(holders.get(name));
    if (makesTask(from)) held.add(name);
    for (const other of identifiersIn(from)) for (const task of holders.get(other) ?? []) held.add(task);
    if (held.size > 0) holders.set(name, held);
  }
  return holders;
}

/** `yield task` gives the result, not the task. */
function isYield(node: SyntaxNode): boolean {
  if (node.type === 'YieldExpression') return true;
  return /^(?:TSAs|TSNonNull|Parenthesized|TSSatisfies)/.test(node.type) && isYield(node.expression as SyntaxNode);
}

function makesTask(node: SyntaxNode): boolean {
  for (const inner of withoutYields(node)) {
    if (inner.type === 'CallExpression' && MAKES_TASK.test(dottedName(inner.callee as SyntaxNode) ?? '')) return true;
  }
  return false;
}

function* withoutYields(value: unknown): Generator<SyntaxNode> {
  if (Array.isArray(value)) {
    for (const item of value) yield* withoutYields(item);
  } else if (value !== null && typeof value === 'object') {
    const node = value as SyntaxNode;
    if (node.type === 'YieldExpression') return;
    if (typeof node.type === 'string') yield node;
    for (const child of Object.values(node)) yield* withoutYields(child);
  }
}

function identifiersIn(value: unknown): Set<string> {
  const names = new Set<string>();
  for (const node of withoutYields(value)) if (node.type === 'Identifier') names.add(node.name as string);
  return names;
}

const LOOP = /^(?:For|While|DoWhile)\w*Statement$/;

/** All nodes of one function, with the loops around each; functions inside it that are no generators count as loops. */
function walk(
  value: unknown,
  loops: readonly SyntaxNode[],
  visit: (node: SyntaxNode, loops: readonly SyntaxNode[]) => void,
): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, loops, visit);
  } else if (value !== null && typeof value === 'object') {
    const node = value as SyntaxNode;
    if (typeof node.type === 'string') visit(node, loops);
    const inner = LOOP.test(node.type) || isFunction(node) ? [...loops, node] : loops;
    for (const child of Object.values(node)) walk(child, inner, visit);
  }
}

function isFunction(node: SyntaxNode): boolean {
  return /^(?:Function(?:Declaration|Expression)|ArrowFunctionExpression)$/.test(node.type);
}
