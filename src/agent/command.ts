/** What every command is given, and how it opens its session. */

import type { ReadStream } from 'node:tty';
import { AriusError } from '../errors.ts';
import type { EmbeddedServiceLauncher } from './embedded.ts';
import { HashCache } from './files/hash-cache.ts';
import { reasonOf } from './files/system-errors.ts';
import type { Output, TextStream } from './output/output.ts';
import { type PromptInput, promptPassphrase } from './passphrase-prompt.ts';
import { openSession, type Session, type SessionOptions } from './session.ts';
import { type CommonOptions, type Environment, readSettings, type Settings } from './settings.ts';
import type { Sleep } from './transport/retry.ts';

export interface AgentDependencies {
  readonly embedded: EmbeddedServiceLauncher;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly env: Environment;
  /** Asked for a passphrase when it is a terminal. */
  readonly stdin?: ReadStream | undefined;
  /** Tests: how pauses between attempts pass. */
  readonly sleep?: Sleep;
}

export interface CommandContext {
  readonly deps: AgentDependencies;
  readonly output: Output;
  /** Aborted by Ctrl-C, SIGTERM, or the first stage that fails. */
  readonly abort: AbortController;
}

export async function withSession<T>(
  context: CommandContext,
  options: CommonOptions,
  sessionOptions: Pick<SessionOptions, 'create' | 'throttle'>,
  work: (session: Session, settings: Settings) => Promise<T>,
): Promise<T> {
  const { deps, output, abort } = context;
  const settings = await readSettings(options, deps.env);
  const session = await openSession({
    repository: settings.repository,
    service: settings.service,
    stateDirectory: settings.stateDirectory,
    passphraseText: settings.passphraseText,
    promptPassphrase: promptOf(deps, settings.repository),
    embedded: deps.embedded,
    signal: abort.signal,
    ...(deps.sleep === undefined ? {} : { sleep: deps.sleep }),
    onProgress: (message) => output.remark(message),
    ...sessionOptions,
  });
  let result: T;
  try {
    result = await work(session, settings);
  } catch (error) {
    // The first error is the one to report.
    await session.close().catch(() => undefined);
    throw error;
  }
  await session.close();
  return result;
}

/** The hashes that are valid in this repository, with this passphrase. */
export async function openHashCache(session: Session, settings: Settings): Promise<HashCache> {
  try {
    return await HashCache.open(settings.hashCacheFile, {
      repository: settings.repository,
      // Two passphrases give two fingerprints; neither can be seen in it more easily than in any content hash.
      passphraseFingerprint: session.hasher.contentHash(Buffer.from('hash cache')),
    });
  } catch (error) {
    throw new AriusError(
      'folder-unreadable',
      `The state folder ${settings.agentDirectory} of the agent cannot be used: ${reasonOf(error)}.`,
      'Make it writable, or choose another one with ARIUS_AGENT_DIR.',
      { cause: error },
    );
  }
}

function promptOf(deps: AgentDependencies, repository: string): (() => Promise<string>) | undefined {
  const { stdin, stderr } = deps;
  if (stdin?.isTTY !== true || stderr.isTTY !== true) {
    return undefined;
  }
  return () => promptPassphrase(`Passphrase of the repository "${repository}": `, stdin as PromptInput, stderr);
}
