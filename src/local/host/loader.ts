/**
 * Loads an app as the Node worker does: every file that package.json's `main` (a path or a glob) names, each once, in
 * order of name; then the app start hooks run and registration is over.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import picomatch from 'picomatch';
import type { HostLog } from './log.ts';
import { type FunctionRegistry, RegistrationError } from './registry.ts';

export async function loadApp(appDirectory: string, registry: FunctionRegistry, log: HostLog): Promise<void> {
  for (const file of entryFiles(appDirectory)) {
    try {
      await import(pathToFileURL(file).href);
    } catch (error) {
      throw new RegistrationError(`${relative(appDirectory, file)} could not be loaded: ${describe(error)}`);
    }
  }
  const { model } = registry;
  if (model === undefined) throw new RegistrationError(`The app in ${appDirectory} registered no function.`);
  await registry.runHooks('appStart', { hookData: {}, appHookData: {} });
  const capabilities = await model.getCapabilities({});
  if ('HttpUri' in capabilities) {
    throw new RegistrationError('The local host has no HTTP streaming: remove app.setup({ enableHttpStream: true }).');
  }
  registry.lock();
  log.info(`Loaded ${registry.all().length} functions (${model.name} ${model.version}).`);
}

function entryFiles(appDirectory: string): string[] {
  const main = mainPattern(appDirectory);
  const base = picomatch.scan(main).base;
  const matches = picomatch(main);
  const names = listFiles(join(appDirectory, base))
    .map((file) => relative(appDirectory, file).split(sep).join('/'))
    .filter((name) => matches(name) && !name.endsWith('.d.ts'));
  if (names.length === 0) {
    throw new RegistrationError(
      `"main" of ${join(appDirectory, 'package.json')} (${main}) names no file. Is it built?`,
    );
  }
  return names.sort().map((name) => join(appDirectory, name));
}

function mainPattern(appDirectory: string): string {
  const path = join(appDirectory, 'package.json');
  let main: unknown;
  try {
    main = (JSON.parse(readFileSync(path, 'utf8')) as { main?: unknown }).main;
  } catch (error) {
    throw new RegistrationError(`${path} cannot be read: ${describe(error)}`);
  }
  if (typeof main !== 'string') throw new RegistrationError(`${path} has no "main".`);
  return main.replace(/^\.\//, '');
}

function listFiles(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOTDIR') return [path];
    if (code === 'ENOENT') return [];
    throw error;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
