/**
 * Puts the parts together and takes them down again. Order of the start: listen (the app must know its address),
 * load the app, check it, open the task hub, answer requests, take up what an earlier process left.
 */

import { randomBytes } from 'node:crypto';
import { REQUEST_BODY_DEFAULT_BYTES_MAX, STOP_GRACE_MS } from '../../limits.ts';
import { checkApp } from './app-check.ts';
import { installCoreModule } from './core-module.ts';
import { dispatcher } from './dispatcher.ts';
import { clientBinding } from './durable/client-binding.ts';
import { Engine } from './durable/engine.ts';
import { Hub } from './durable/hub.ts';
import { HttpServer } from './http-server.ts';
import { claimHub } from './hub-claim.ts';
import { Invoker } from './invocation.ts';
import { KeyStore } from './keys.ts';
import { loadApp } from './loader.ts';
import { HostLog } from './log.ts';
import type { QueueParts, QueueTriggers } from './queues.ts';
import { FunctionRegistry } from './registry.ts';
import { RouteTable } from './route-table.ts';
import { readHostConfig } from './settings.ts';
import { TestHooks } from './test-hooks.ts';
import { TimerTriggers } from './timers.ts';

export interface HostOptions {
  readonly appDirectory: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly stateDirectory: string | undefined;
  readonly port: number;
}

export interface Host {
  readonly port: number;
  readonly masterKey: string;
  readonly functionKey: string;
  stop(): Promise<void>;
}

/** process.env already holds the settings and the secrets. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { appDirectory, settings, secrets, stateDirectory } = options;
  const config = readHostConfig(appDirectory, settings);
  const hooks = new TestHooks(settings);
  const log = new HostLog({ minimumLevel: config.logLevel });
  for (const secret of Object.values(secrets)) log.addSecret(secret);
  if (hooks.usesChance) log.info(`Test hooks use the seed ${hooks.seed}.`);
  const claim = stateDirectory === undefined ? undefined : claimHub(stateDirectory);

  const bodyBytesMax = Number(settings.FUNCTIONS_REQUEST_BODY_SIZE_LIMIT ?? REQUEST_BODY_DEFAULT_BYTES_MAX);
  const server = new HttpServer(log, bodyBytesMax);
  const port = await server.listen(options.port);
  const origin = `http://127.0.0.1:${port}`;
  process.env.WEBSITE_HOSTNAME = `127.0.0.1:${port}`;

  const registry = new FunctionRegistry();
  installCoreModule(registry, log);
  await loadApp(appDirectory, registry, log);
  checkApp(registry);

  const keys = KeyStore.open(
    stateDirectory,
    registry.all().map((entry) => entry.name),
  );
  for (const key of keys.all()) log.addSecret(key);
  const rpcToken = randomBytes(24).toString('base64url');
  log.addSecret(rpcToken);
  const { hubName } = config.durable;
  const rpcBaseUrl = `${origin}/runtime/rpc/${rpcToken}/durabletask/`;
  const binding = clientBinding({ origin, hubName, key: keys.durableKey, rpcBaseUrl });
  const invoker = new Invoker({ registry, log, timeoutMs: config.functionTimeoutMs, clientBinding: () => binding });
  const hub = new Hub(stateDirectory, hooks, (error) => die(log, error));
  const engine = new Engine({ registry, invoker, log, hub, config: config.durable, hooks });
  const timers = new TimerTriggers({ registry, invoker, hub, log });
  const queues = await queueTriggers({ registry, invoker, log, config: config.queues });
  const routes = new RouteTable(registry, config.routePrefix);

  const api = { engine, hubName, key: keys.durableKey };
  server.handleWith(dispatcher({ api, rpcToken, keys, timers, functions: { routes, keys, invoker, log } }));
  engine.resume();
  timers.start();
  queues?.start();
  log.info(`Listening on ${origin}.`);

  const stop = async (): Promise<void> => {
    timers.stop();
    queues?.stop();
    engine.stop();
    server.close();
    await Promise.race([invoker.idle(), delay(STOP_GRACE_MS)]);
    await Promise.race([
      registry.runHooks('appTerminate', { hookData: {}, appHookData: {} }),
      delay(STOP_GRACE_MS / 4),
    ]);
    // The answers of functions that have just ended leave in this turn; the hub's last commits with them.
    await delay(1);
    hub.close();
    claim?.release();
  };
  return { port, masterKey: keys.masterKey, functionKey: keys.hostKey, stop };
}

/** The storage library takes a while to load; an app without queues does not need it. */
async function queueTriggers(parts: QueueParts): Promise<QueueTriggers | undefined> {
  if (parts.registry.ofTrigger('queueTrigger').length === 0) return undefined;
  const module = await import('./queues.ts');
  return new module.QueueTriggers(parts);
}

/** What could not be written must not be acted on: the process ends and the next one does that work again. */
function die(log: HostLog, error: unknown): never {
  log.error('The journal could not be written; the host ends', error);
  process.exit(1);
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
