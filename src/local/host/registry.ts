/**
 * What the app registered while it was loaded. Names are unique across all trigger kinds, whatever their case; after
 * `lock` nothing can be added.
 */

import type { Binding, FunctionCallback, FunctionMetadata, HookCallback, ProgrammingModel } from './rpc-types.ts';

const HOOK_NAMES = new Set(['preInvocation', 'postInvocation', 'appStart', 'appTerminate', 'log']);
const FUNCTION_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,126}$/;

export interface RegisteredFunction {
  readonly id: string;
  readonly name: string;
  readonly metadata: FunctionMetadata;
  readonly callback: FunctionCallback;
  readonly triggerName: string;
  readonly trigger: Binding;
}

/** The app registered something the host cannot run; the app does not start. */
export class RegistrationError extends Error {
  override readonly name = 'RegistrationError';
}

export class FunctionRegistry {
  readonly #functions = new Map<string, RegisteredFunction>();
  readonly #hooks = new Map<string, HookCallback[]>();
  #locked = false;
  model: ProgrammingModel | undefined;

  register(metadata: FunctionMetadata, callback: FunctionCallback): void {
    const { name } = metadata;
    if (this.#locked) throw new RegistrationError(`Function "${name}" was registered after the app had started.`);
    if (!FUNCTION_NAME.test(name)) throw new RegistrationError(`"${name}" is not a valid function name.`);
    const key = name.toLowerCase();
    if (this.#functions.has(key)) throw new RegistrationError(`A function with the name "${name}" exists already.`);
    const triggers = Object.entries(metadata.bindings).filter(([, binding]) => /trigger$/i.test(binding.type));
    const [trigger] = triggers;
    if (trigger === undefined || triggers.length > 1) {
      throw new RegistrationError(`Function "${name}" must have exactly one trigger; it has ${triggers.length}.`);
    }
    const id = `${name}-${this.#functions.size}`;
    this.#functions.set(key, { id, name, metadata, callback, triggerName: trigger[0], trigger: trigger[1] });
  }

  lock(): void {
    this.#locked = true;
  }

  all(): RegisteredFunction[] {
    return [...this.#functions.values()];
  }

  find(name: string): RegisteredFunction | undefined {
    return this.#functions.get(name.toLowerCase());
  }

  ofTrigger(type: string): RegisteredFunction[] {
    return this.all().filter((entry) => entry.trigger.type.toLowerCase() === type.toLowerCase());
  }

  addHook(name: string, callback: HookCallback): () => void {
    if (!HOOK_NAMES.has(name)) {
      throw Object.assign(new RangeError(`Unrecognized hook "${name}"`), { isAzureFunctionsSystemError: true });
    }
    const callbacks = this.#hooks.get(name) ?? [];
    this.#hooks.set(name, [...callbacks, callback]);
    return () =>
      this.#hooks.set(
        name,
        (this.#hooks.get(name) ?? []).filter((entry) => entry !== callback),
      );
  }

  hooks(name: string): readonly HookCallback[] {
    return this.#hooks.get(name) ?? [];
  }

  async runHooks(name: string, context: Record<string, unknown>): Promise<void> {
    for (const hook of this.hooks(name)) await hook(context);
  }
}
