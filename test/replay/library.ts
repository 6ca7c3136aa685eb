/** The real library with a host's registry behind it. Import it before anything that registers functions. */

import { installCoreModule } from '../../src/local/host/core-module.ts';
import { Invoker } from '../../src/local/host/invocation.ts';
import { HostLog } from '../../src/local/host/log.ts';
import { FunctionRegistry } from '../../src/local/host/registry.ts';

const log = new HostLog({ write: () => undefined });
export const registry = new FunctionRegistry();
installCoreModule(registry, log);

export const invoker = new Invoker({ registry, log, timeoutMs: 60_000, clientBinding: () => '{}' });
