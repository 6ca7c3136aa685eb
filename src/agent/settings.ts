/** From the command line and the environment to what a command works with. The command line wins. */

import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { repositoryName } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The options every command has. */
export interface CommonOptions {
  readonly repository?: string;
  readonly url?: string;
  readonly token?: string;
  readonly passphraseFile?: string;
  readonly local?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
  readonly progress?: boolean;
}

export interface Settings {
  readonly repository: string;
  /** Undefined: the embedded service. */
  readonly service: { readonly url: string; readonly functionKey: string | undefined } | undefined;
  readonly passphraseText: string | undefined;
  /** State of the embedded service. */
  readonly stateDirectory: string;
  /** State of the agent itself: all of it disposable. */
  readonly agentDirectory: string;
  readonly hashCacheFile: string;
  /** Databases of runs, and bodies on their way, unless another folder is chosen for those. */
  readonly runsDirectory: string;
}

export async function readSettings(options: CommonOptions, env: Environment): Promise<Settings> {
  const repository = options.repository ?? nonEmpty(env.ARIUS_REPOSITORY) ?? 'default';
  const parsed = repositoryName.safeParse(repository);
  if (!parsed.success) {
    throw usage(
      `"${repository}" is not a name of a repository.`,
      'Use 3 to 63 lower-case letters, digits and single hyphens.',
    );
  }
  const agentDirectory = resolve(nonEmpty(env.ARIUS_AGENT_DIR) ?? join(homedir(), '.arius-functions', 'agent'));
  return {
    repository,
    service: await serviceOf(options, env, agentDirectory),
    passphraseText: await passphraseOf(options, env),
    stateDirectory: stateDirectoryOf(options, env),
    agentDirectory,
    hashCacheFile: join(agentDirectory, 'hash-cache.sqlite'),
    runsDirectory: join(agentDirectory, 'runs'),
  };
}

function stateDirectoryOf(options: Pick<CommonOptions, 'local'>, env: Environment): string {
  return resolve(options.local ?? nonEmpty(env.ARIUS_LOCAL_DIR) ?? join(homedir(), '.arius-functions', 'local'));
}

/** Exactly as it is, but for the one line end that editors put at the end of a file. */
async function passphraseOf(
  options: Pick<CommonOptions, 'passphraseFile'>,
  env: Environment,
): Promise<string | undefined> {
  if (options.passphraseFile === undefined) {
    return nonEmpty(env.ARIUS_PASSPHRASE);
  }
  let text: string;
  try {
    text = (await readFile(options.passphraseFile, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw usage(`The passphrase file ${options.passphraseFile} cannot be read (${code}).`, 'Check its path.', error);
  }
  if (text === '') {
    throw usage(`The passphrase file ${options.passphraseFile} is empty.`, 'Put the passphrase into it.');
  }
  return text;
}

const storedConnection = z.object({ url: z.string(), token: z.string().optional() });

/** What `connect` stored. */
function connectionFile(agentDirectory: string): string {
  return join(agentDirectory, 'connection.json');
}

async function serviceOf(
  options: CommonOptions,
  env: Environment,
  agentDirectory: string,
): Promise<Settings['service']> {
  const token = options.token ?? nonEmpty(env.ARIUS_TOKEN);
  const url = options.url ?? nonEmpty(env.ARIUS_URL);
  if (url !== undefined) {
    return { url: checkedUrl(url), functionKey: token };
  }
  // Asking for the local state means the embedded service, whatever is stored.
  if (options.local !== undefined) {
    return undefined;
  }
  const stored = await readStored(connectionFile(agentDirectory));
  return stored === undefined ? undefined : { url: checkedUrl(stored.url), functionKey: token ?? stored.token };
}

async function readStored(path: string): Promise<z.infer<typeof storedConnection> | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    return storedConnection.parse(JSON.parse(text));
  } catch (error) {
    throw usage(`The stored connection ${path} cannot be understood.`, 'Remove it, or pass --url.', error);
  }
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usage(`"${text}" is not an address of a service.`, 'It looks like https://name.azurewebsites.net.');
  }
  return url.href.replace(/\/+$/, '').replace(/\/api$/, '');
}

/** An empty name is a script's unset variable, not the current folder. @throws AriusError `usage` */
export function folderNamed(argument: string): string {
  if (argument.trim() === '') {
    throw usage('The name of the folder is empty.', 'Name a folder; "." is the current one.');
  }
  return resolve(argument);
}

export function usage(detail: string, next: string, cause?: unknown): AriusError {
  return new AriusError('usage', detail, next, cause === undefined ? {} : { cause });
}

/** An empty variable is as good as none. */
function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
