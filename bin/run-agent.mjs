/** The agent's process: brings the build up to date when this is a checkout, then runs the command. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @param {string} path */
const importBuilt = (path) => import(pathToFileURL(join(root, 'dist', 'src', path)).href);

const buildScript = join(root, 'scripts', 'build.mjs');
if (existsSync(join(root, 'src')) && existsSync(buildScript)) {
  const { buildWhenNeeded } = await import(pathToFileURL(buildScript).href);
  try {
    buildWhenNeeded(root);
  } catch (error) {
    console.error(`The agent could not be built: ${error instanceof Error ? error.message : error}`);
    process.exit(1);
  }
}

const { runAgent } = await importBuilt('agent/main.js');

/** Loaded only when a command needs it: an agent beside a deployed service never does. */
const embedded = {
  /** @param {unknown} options */
  async start(options) {
    const { embeddedServiceLauncher } = await importBuilt('local/embedded-service.js');
    return embeddedServiceLauncher.start(options);
  },
};

const { env, stdin, stdout, stderr } = process;
// A reader that went away (`… | head`) does not end an archive.
for (const stream of [stdout, stderr]) stream.on('error', () => undefined);

process.exitCode = await runAgent(process.argv.slice(2), { embedded, env, stdin, stdout, stderr });
