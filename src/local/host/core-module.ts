/**
 * Gives the app's `@azure/functions` the module it takes for the sign of a real host. The library is one CommonJS
 * bundle that calls `require('@azure/functions-core')` on first use, also in ESM apps; answering that one request in
 * the module loader leaves the app and its packages untouched. Must be installed before the app is imported.
 */

import Module from 'node:module';
import type { HostLog } from './log.ts';
import type { FunctionRegistry } from './registry.ts';
import type { FunctionCallback, FunctionMetadata, HookCallback, ProgrammingModel } from './rpc-types.ts';

const CORE_MODULE = '@azure/functions-core';
/** A host version that supports every feature the library asks about. */
const HOST_VERSION = '4.1040.0';

class Disposable {
  readonly #onDispose: () => void;
  constructor(onDispose: () => void) {
    this.#onDispose = onDispose;
  }
  static from(...disposables: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => {
      for (const disposable of disposables) disposable.dispose();
    });
  }
  dispose(): void {
    this.#onDispose();
  }
}

interface CommonJsLoader {
  _load(request: string, ...rest: unknown[]): unknown;
}

export function installCoreModule(registry: FunctionRegistry, log: HostLog): void {
  const core = {
    version: HOST_VERSION,
    hostVersion: HOST_VERSION,
    Disposable,
    registerFunction(metadata: FunctionMetadata, callback: FunctionCallback): Disposable {
      registry.register(metadata, callback);
      return new Disposable(() => undefined);
    },
    registerHook: (name: string, callback: HookCallback): Disposable =>
      new Disposable(registry.addHook(name, callback)),
    setProgrammingModel(model: ProgrammingModel): void {
      registry.model = model;
    },
    getProgrammingModel: (): ProgrammingModel | undefined => registry.model,
    log: (level: string, category: string, message: string): void => log.write(level, message, { category }),
  };
  const loader = Module as unknown as CommonJsLoader;
  const load = loader._load;
  loader._load = function patched(this: unknown, request: string, ...rest: unknown[]): unknown {
    return request === CORE_MODULE ? core : load.call(this, request, ...rest);
  };
}
