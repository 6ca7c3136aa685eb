/** `arius-agent serve`: the embedded service and the portal, until Ctrl-C. */

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
  });
  try {
    output.ready(
      [
        `The service runs at ${service.url}, its state is in ${service.stateDirectory}.`,
        `The portal is at    ${service.portalUrl}`,
        'Ctrl-C ends it, with everything saved.',
      ],
      {
        url: service.url,
        portalUrl: service.portalUrl,
        storage: { connectionString: service.storageConnectionString },
        stateDir: service.stateDirectory,
      },
    );
    await aborted(abort.signal);
  } finally {
    await service.stop();
  }
  // Ending it is how this command ends well.
  return 0;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    // The service is other processes and their pipes may be still: something of our own keeps this one alive.
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener(
      'abort',
      () => {
        clearInterval(alive);
        resolve();
      },
      { once: true },
    );
  });
}
