#!/usr/bin/env node
/**
 * The command `arius-agent`: finds a Node that is new enough and hands over to it, with the memory of the agent bounded.
 * Runs on any Node that knows ES modules; nothing newer may be imported from here.
 */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseNode } from './node-runtime.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * The agent stays within 200 MiB whatever it archives. V8 grows its heap as long as it is allowed to, so a bound makes it
 * collect instead; the young generation is small because the agent's garbage is buffers, which live outside of it.
 */
const NODE_FLAGS = [
  '--max-old-space-size=96',
  '--max-semi-space-size=4',
  // node:sqlite says on first use that it is experimental; users can do nothing about that.
  '--disable-warning=ExperimentalWarning',
];

/** glibc keeps up to eight arenas of freed memory per core; two are enough for the few threads that allocate. */
const ENVIRONMENT = { MALLOC_ARENA_MAX: '2', ...process.env };

const PASSED_ON = /** @type {const} */ (['SIGTERM', 'SIGHUP']);

/**
 * Replaces this process, so that signals and memory concern one process only.
 *
 * @param {string} node
 * @param {string[]} args
 */
function replaceProcess(node, args) {
  process.execve?.(node, [node, ...args], ENVIRONMENT);
}

/**
 * Where a process cannot be replaced (older Node, Windows): a child, and this process passes on signals and exit code.
 *
 * @param {string} node
 * @param {string[]} args
 */
function runAsChild(node, args) {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  // Before the child is there, so that no signal can end this process alone.
  for (const signal of PASSED_ON) process.on(signal, () => child?.kill(signal));
  process.on('SIGINT', () => {
    // Ctrl-C on a terminal reaches both processes; passing it on as well would count as a second Ctrl-C.
    if (!process.stdin.isTTY) child?.kill('SIGINT');
  });
  child = spawn(node, args, { stdio: 'inherit', env: ENVIRONMENT });
  child.on('error', (error) => fail(`${node} could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of [...PASSED_ON, 'SIGINT']) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}

/** @param {string} problem */
function fail(problem) {
  console.error(problem);
  process.exit(1);
}

// npm runs scripts in the folder of the project; names of folders mean what they mean where the user stands.
if (process.env.npm_lifecycle_event === 'arius' && process.env.INIT_CWD) process.chdir(process.env.INIT_CWD);

const choice = chooseNode({ root, version: process.versions.node, execPath: process.execPath });
if ('problem' in choice) {
  fail(choice.problem);
} else if (!existsSync(join(root, 'node_modules'))) {
  fail('The packages of the project are not installed: run "npm ci" here first.');
} else {
  const args = [...NODE_FLAGS, join(root, 'bin', 'run-agent.mjs'), ...process.argv.slice(2)];
  if (typeof process.execve === 'function' && process.platform !== 'win32') replaceProcess(choice.path, args);
  else runAsChild(choice.path, args);
}
