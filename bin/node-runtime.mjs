/**
 * Which Node runs the agent. This file, and the one that imports it first, must parse and run on Node versions that are
 * too old for the agent, because they are what tells the user so.
 */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The first release with zstd in its zlib module and with `process.execve`. */
const NODE_MIN = { major: 22, minor: 15 };

/**
 * @param {string} version such as `20.11.1`
 * @returns {boolean}
 */
export function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > NODE_MIN.major || (major === NODE_MIN.major && minor >= NODE_MIN.minor);
}

/**
 * The running Node when it is new enough, else the one that came with the dev dependency `node`, else a text that says
 * what to do.
 *
 * @param {{ root: string, version: string, execPath: string }} options
 * @returns {{ path: string } | { problem: string }}
 */
export function chooseNode({ root, version, execPath }) {
  if (isNewEnough(version)) return { path: execPath };
  const packageDirectory = join(root, 'node_modules', 'node');
  const bundled = join(packageDirectory, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  const needed = `Node ${NODE_MIN.major}.${NODE_MIN.minor} or newer is needed; this is Node ${version}.`;
  const install = `install Node ${NODE_MIN.major} from https://nodejs.org and run the command again`;
  if (!existsSync(packageDirectory)) {
    return {
      problem: `${needed}\nRun "npm ci" here, which brings a newer Node for this project alone, or ${install}.`,
    };
  }
  if (!existsSync(bundled)) {
    return {
      problem:
        `${needed}\nThe project brings one of its own, but npm did not run the install script that puts it in place.\n` +
        `Run "npm install-scripts approve node" (npm 11 and newer) and "npm rebuild node", or ${install}.`,
    };
  }
  const trial = spawnSync(bundled, ['--version'], { encoding: 'utf8' });
  if (trial.status !== 0 || !isNewEnough(trial.stdout.trim().replace(/^v/, ''))) {
    return {
      problem: `${needed}\nThe one that the project brings does not run on this machine (${bundled}): ${install}.`,
    };
  }
  return { path: bundled };
}
