/**
 * The build: `tsc` into `dist`, only when a source has changed, one at a time.
 *
 * - What was built is told by content (a hash over all sources in `dist/.sources`), not by times, which a checkout or a
 *   copy changes.
 * - A build goes to a new folder that replaces `dist` when it is complete: an interrupted build leaves the old one, and a
 *   deleted source leaves nothing behind that the function app would still load.
 * - Two commands at once: the second waits for the first by a lock that ends with its process, then finds nothing to do.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isNewEnough } from '../bin/node-runtime.mjs';

const SOURCE_FOLDERS = ['functions', 'src'];
const SOURCE_FILES = ['package.json', 'tsconfig.json', 'tsconfig.build.json'];
const STAMP = '.sources';
/** A build takes about a second; one that holds the lock this long hangs. */
const LOCK_WAIT_MS = 120_000;

/**
 * @param {string} root
 * @returns {string[]} absolute paths, in a fixed order
 */
function sourcesOf(root) {
  const paths = SOURCE_FILES.map((file) => join(root, file));
  for (const folder of SOURCE_FOLDERS) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) paths.push(join(entry.parentPath, entry.name));
    }
  }
  return paths.sort();
}

/** @param {string} root */
function sourcesHash(root) {
  const hash = createHash('sha256');
  for (const path of sourcesOf(root)) {
    const bytes = readFileSync(path);
    hash.update(`${relative(root, path)}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** @param {string} root */
function builtHash(root) {
  try {
    return readFileSync(join(root, 'dist', STAMP), 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * @param {string} root
 * @param {string} hash
 */
function build(root, hash) {
  const next = join(root, 'dist.next');
  const old = join(root, 'dist.old');
  rmSync(next, { recursive: true, force: true });
  rmSync(old, { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'lib', 'tsc.js');
  const result = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', next], {
    stdio: ['ignore', 2, 2],
  });
  if (result.status !== 0) {
    rmSync(next, { recursive: true, force: true });
    throw new Error('the sources do not compile (see above)');
  }
  writeFileSync(join(next, STAMP), hash);
  try {
    renameSync(join(root, 'dist'), old);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
  }
  renameSync(next, join(root, 'dist'));
  rmSync(old, { recursive: true, force: true });
}

/**
 * Leaves `dist` up to date. Needs no write access when it is already.
 *
 * @param {string} root the project's folder
 * @returns {boolean} whether there was anything to do
 */
export function buildWhenNeeded(root) {
  if (builtHash(root) === sourcesHash(root)) return false;
  const lockFolder = join(root, 'node_modules', '.cache', 'arius-functions');
  mkdirSync(lockFolder, { recursive: true });
  // Loaded here, not above: most runs have nothing to build.
  const { DatabaseSync } = createRequire(import.meta.url)('node:sqlite');
  const lock = new DatabaseSync(join(lockFolder, 'build-lock.sqlite'), { timeout: LOCK_WAIT_MS });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    const hash = sourcesHash(root);
    if (builtHash(root) === hash) return false;
    build(root, hash);
    return true;
  } finally {
    lock.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  // node:sqlite says on first use that it is experimental; nobody who builds can do anything about that.
  process.removeAllListeners('warning');
  try {
    if (!isNewEnough(process.versions.node)) throw new Error('this Node is too old; use "npm run build"');
    console.error(buildWhenNeeded(root) ? 'Built dist.' : 'dist is up to date.');
  } catch (error) {
    console.error(`Not built: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
