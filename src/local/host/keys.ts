/**
 * Access keys, as Azure has them: a master key, a host default key, one key per function and the system key of the
 * durable extension. Kept in `keys.json` of the state directory, readable by its owner only; without a directory they
 * live as long as the process. Comparisons take the same time wherever they differ.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const OWNER_ONLY = 0o600;

interface KeyFile {
  master: string;
  hostDefault: string;
  durable: string;
  functions: Record<string, string>;
}

export class KeyStore {
  readonly #keys: KeyFile;

  private constructor(keys: KeyFile) {
    this.#keys = keys;
  }

  static open(stateDirectory: string | undefined, functionNames: readonly string[]): KeyStore {
    const path = stateDirectory === undefined ? undefined : join(stateDirectory, 'keys.json');
    const keys = (path === undefined ? undefined : readKeys(path)) ?? newKeys();
    for (const name of functionNames) keys.functions[name] ??= newKey();
    if (path !== undefined) writeKeys(path, keys);
    return new KeyStore(keys);
  }

  get masterKey(): string {
    return this.#keys.master;
  }

  get hostKey(): string {
    return this.#keys.hostDefault;
  }

  get durableKey(): string {
    return this.#keys.durable;
  }

  all(): string[] {
    return [this.#keys.master, this.#keys.hostDefault, this.#keys.durable, ...Object.values(this.#keys.functions)];
  }

  allowsAdmin(key: string | undefined): boolean {
    return matches(key, [this.#keys.master]);
  }

  allowsFunction(key: string | undefined, functionName: string): boolean {
    return matches(key, [this.#keys.master, this.#keys.hostDefault, this.#keys.functions[functionName]]);
  }

  allowsDurable(key: string | undefined): boolean {
    return matches(key, [this.#keys.master, this.#keys.durable]);
  }
}

/** Takes the same time wherever the texts differ. */
export function matches(given: string | undefined, accepted: readonly (string | undefined)[]): boolean {
  if (given === undefined) return false;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  let found = false;
  for (const key of accepted) {
    if (key !== undefined && timingSafeEqual(digest(given), digest(key))) found = true;
  }
  return found;
}

function newKey(): string {
  return randomBytes(32).toString('base64url');
}

function newKeys(): KeyFile {
  return { master: newKey(), hostDefault: newKey(), durable: newKey(), functions: {} };
}

function readKeys(path: string): KeyFile | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  chmodSync(path, OWNER_ONLY);
  const keys = JSON.parse(text) as Partial<KeyFile>;
  if (!keys.master || !keys.hostDefault || !keys.durable || !keys.functions) {
    throw new Error(`${path} is damaged; delete it to have new keys generated.`);
  }
  return { master: keys.master, hostDefault: keys.hostDefault, durable: keys.durable, functions: keys.functions };
}

/** Written beside and renamed over, so that a crash leaves the old keys or the new ones. */
function writeKeys(path: string, keys: KeyFile): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, `${JSON.stringify(keys, undefined, 2)}\n`, { mode: OWNER_ONLY });
  renameSync(temporary, path);
}
