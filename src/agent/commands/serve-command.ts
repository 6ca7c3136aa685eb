/** `arius-agent serve`: the embedded service, until Ctrl-C. */

import type { AriusError } from '../../errors.ts';
import type { CommandContext } from '../command.ts';
import { type CommonOptions, readSettings } from '../settings.ts';

export async function serveCommand(context: CommandContext, options: CommonOptions): Promise<number> {
  const { deps, output, abort } = context;
  const { passphraseText, repository, stateDirectory } = await readSettings(options, deps.env);
  const service = await deps.embedded.start({
    stateDirectory,
    passphrases: passphraseText === undefined ? {} : { [repository]: passphraseText },
    onProgress: (message) => output.remark(message),
    keepRunning: true,
    signal: abort.signal,
  });
  try {
    output.ready(
      [
        `The service runs at ${service.url}, its state is in ${service.stateDirectory}.`,
        'Ctrl-C ends it, with everything saved.',
      ],
      {
        url: service.url,
        portalUrl: service.portalUrl,
        storage: { connectionString: service.storageConnectionString },
        stateDir: service.stateDirectory,
      },
    );
    const failure = await ended(abort.signal, service.failed);
    if (failure !== undefined) {
      throw failure;
    }
  } finally {
    await service.stop();
  }
  // Ending it is how this command ends well.
  return 0;
}

/** Undefined: the user ended it. */
async function ended(signal: AbortSignal, failed: Promise<AriusError>): Promise<AriusError | undefined> {
  // The service is other processes and their pipes may be still: something of our own keeps this one alive.
  const alive = setInterval(() => undefined, 60_000);
  try {
    return await Promise.race([aborted(signal), failed]);
  } finally {
    clearInterval(alive);
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
