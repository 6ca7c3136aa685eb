import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** From package.json, which lies two levels up in the sources and three in the build. */
export function agentVersion(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) {
    folder = dirname(folder);
  }
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version?: string };
  return version ?? '0.0.0';
}
