/**
 * The part of the platform that the functions library asks for when it registers an app. Import it before anything that
 * registers; then the registrations of the app can be looked at, and the library stays quiet.
 */

import Module from 'node:module';

export interface Registration {
  readonly name: string;
  readonly bindings: Readonly<Record<string, { readonly type: string } & Readonly<Record<string, unknown>>>>;
}

export const registrations: Registration[] = [];

const core = {
  version: '4.0.0',
  hostVersion: '4.0.0',
  registerFunction: (registration: Registration): void => {
    if (registrations.some((known) => known.name === registration.name)) {
      throw new Error(`Two functions are called "${registration.name}"`);
    }
    registrations.push(registration);
  },
  registerHook: (): { dispose: () => void } => ({ dispose: () => undefined }),
  setProgrammingModel: (): void => undefined,
  getProgrammingModel: (): undefined => undefined,
  log: (): void => undefined,
  Disposable: class {
    dispose(): void {}
  },
};

const loader = Module as unknown as { _load: (request: string, ...rest: unknown[]) => unknown };
const load = loader._load;
loader._load = (request, ...rest) => (request === '@azure/functions-core' ? core : load.call(loader, request, ...rest));

/** What a binding of this type says, for the function that has it. */
export function triggerOf(registration: Registration): { readonly type: string } & Readonly<Record<string, unknown>> {
  const trigger = Object.values(registration.bindings).find((binding) => binding.type.endsWith('Trigger'));
  if (trigger === undefined) {
    throw new Error(`The function "${registration.name}" has no trigger`);
  }
  return trigger;
}
