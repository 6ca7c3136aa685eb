/**
 * The entry of the child process. It takes everything it needs from its parent over the pipe between them, so that no
 * secret is in its arguments or in the environment it was started with; and it ends when that pipe ends, so that
 * nothing is left running when the parent dies.
 */

import { STOP_LIMIT_MS } from '../../limits.ts';
import { type Host, startHost } from './host.ts';
import type { ChildMessage, StartMessage, StopMessage } from './parent-link.ts';
import { isHostSetting } from './test-hooks.ts';

let host: Host | undefined;
let stopping = false;

async function start(message: StartMessage): Promise<void> {
  const { settings, secrets } = message;
  for (const [name, value] of Object.entries({ ...settings, ...secrets })) {
    if (!isHostSetting(name)) process.env[name] = value;
  }
  process.env.AZURE_FUNCTIONS_ENVIRONMENT ??= 'Development';
  process.env.FUNCTIONS_WORKER_RUNTIME ??= 'node';
  try {
    host = await startHost(message);
    send({ type: 'ready', port: host.port, masterKey: host.masterKey, functionKey: host.functionKey });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    send({ type: 'failed', reason }, () => process.exit(1));
  }
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(() => process.exit(0), STOP_LIMIT_MS).unref();
  await host?.stop();
  process.exit(0);
}

function send(message: ChildMessage, sent: () => void = (): void => undefined): void {
  if (process.send === undefined || !process.connected) sent();
  else process.send(message, sent);
}

function crash(kind: string, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(
    `${JSON.stringify({ time: new Date().toISOString(), level: 'critical', message: `${kind}: ${text}` })}\n`,
  );
  process.exit(1);
}

process.on('message', (message: StartMessage | StopMessage) => {
  void (message.type === 'start' ? start(message) : stop());
});
process.on('disconnect', () => void stop());
process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());
process.on('uncaughtException', (error) => crash('Uncaught exception in the app', error));
process.on('unhandledRejection', (error) => crash('Unhandled rejection in the app', error));
// A parent that died takes the other ends of these pipes with it; the disconnect tells what to do.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

if (process.send === undefined) {
  process.stderr.write('The host is started by its parent process, not by hand.\n');
  process.exit(2);
}
send({ type: 'waiting' });
