/**
 * The function app in a local host that is killed at a commit again and again, and started anew on the same journal, the
 * same port and the same keys, until it is stopped: what a deployment, a crash or a full disk does to it, all the time.
 */

import { type HostProcess, type HostProcessOptions, startHostProcess } from '../../src/local/host-process.ts';

export interface RestartingHost {
  readonly url: string;
  readonly functionKey: string;
  /** How often it has been killed so far. */
  restarts(): number;
  stop(): Promise<void>;
}

export interface RestartingHostOptions extends HostProcessOptions {
  /** The state survives in it. */
  readonly stateDirectory: string;
  /** Each life ends at this commit; in turn just before and just after it. */
  readonly commitsPerLife: number;
}

export async function startRestartingHost(options: RestartingHostOptions): Promise<RestartingHost> {
  const { commitsPerLife } = options;
  let restarts = 0;
  let stopped = false;
  const start = async (port?: number): Promise<HostProcess> => {
    const crash = `${restarts % 2 === 0 ? 'after' : 'before'}:${commitsPerLife}`;
    const settings = { ...options.settings, LOCAL_HOST_CRASH: crash };
    return await startHostProcess({ ...options, settings, ...(port === undefined ? {} : { port }) });
  };
  let host = await start();
  const { url, functionKey } = host;
  const supervised = (async (): Promise<void> => {
    for (;;) {
      await host.exited;
      if (stopped) return;
      restarts += 1;
      host = await start(Number(new URL(url).port));
      if (stopped) await host.stop();
    }
  })();
  return {
    url,
    functionKey,
    restarts: () => restarts,
    stop: async (): Promise<void> => {
      stopped = true;
      await host.stop();
      await supervised;
    },
  };
}
