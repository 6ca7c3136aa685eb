/**
 * Runs one function once: hooks, arguments, handler, answer, in the order of the Node worker. A function that outlives
 * the app's `functionTimeout` fails; its code cannot be stopped, so whatever it still does is done by a function
 * nobody waits for (the real host would recycle the process).
 */

import { randomUUID } from 'node:crypto';
import type { HostLog } from './log.ts';
import type { FunctionRegistry, RegisteredFunction } from './registry.ts';
import type { FunctionCallback, InvocationRequest, InvocationResponse, RpcData } from './rpc-types.ts';
import { formatTimeSpan } from './time-span.ts';

/** A function ran longer than host.json's functionTimeout. */
class FunctionTimeoutError extends Error {
  override readonly name = 'FunctionTimeoutError';
}

export interface Invocation {
  readonly trigger: RpcData;
  readonly triggerMetadata?: Readonly<Record<string, RpcData>>;
  readonly instanceId?: string;
}

export class Invoker {
  readonly #registry: FunctionRegistry;
  readonly #log: HostLog;
  readonly #timeoutMs: number;
  readonly #clientBinding: () => string;
  readonly #appHookData = {};
  #running = 0;
  #onIdle: (() => void)[] = [];

  /** `clientBinding` gives the text that a `durableClient` input receives. */
  constructor(options: { registry: FunctionRegistry; log: HostLog; timeoutMs: number; clientBinding: () => string }) {
    this.#registry = options.registry;
    this.#log = options.log;
    this.#timeoutMs = options.timeoutMs;
    this.#clientBinding = options.clientBinding;
  }

  async invoke(target: RegisteredFunction, invocation: Invocation): Promise<InvocationResponse> {
    this.#running += 1;
    try {
      return await this.#withTimeout(target, this.#run(target, invocation));
    } finally {
      this.#running -= 1;
      if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Resolves when no function runs. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #run(target: RegisteredFunction, invocation: Invocation): Promise<InvocationResponse> {
    const { model } = this.#registry;
    if (model === undefined) throw new Error('No programming model is registered.');
    const request = this.#request(target, invocation);
    const details = { function: target.name, invocationId: request.invocationId };
    const coreContext: Record<string, unknown> = {
      invocationId: request.invocationId,
      request,
      metadata: target.metadata,
      state: undefined,
      log: (level: string, category: string, message: string): void => this.#logUser(level, category, message, details),
    };
    const invocationModel = await model.getInvocationModel(coreContext);
    const { context, inputs } = await invocationModel.getArguments();
    const hookContext = { hookData: {}, appHookData: this.#appHookData, invocationContext: context };

    coreContext.state = 'preInvocationHooks';
    const before = { ...hookContext, functionCallback: target.callback, inputs };
    await this.#registry.runHooks('preInvocation', before);

    coreContext.state = 'invocation';
    const outcome: { result?: unknown; error?: unknown } = {};
    try {
      outcome.result = await invocationModel.invokeFunction(
        context,
        before.inputs,
        before.functionCallback as FunctionCallback,
      );
    } catch (error) {
      outcome.error = error ?? new Error('The function threw nothing');
    }
    if (this.#registry.hooks('postInvocation').length > 0) {
      coreContext.state = 'postInvocationHooks';
      const after = { ...hookContext, inputs: before.inputs, result: null, error: null, ...outcome };
      await this.#registry.runHooks('postInvocation', after);
      outcome.result = after.result;
      outcome.error = after.error;
    }
    if (outcome.error !== undefined && outcome.error !== null) throw outcome.error;
    return await invocationModel.getResponse(context, outcome.result);
  }

  #request(target: RegisteredFunction, invocation: Invocation): InvocationRequest {
    const inputData = [{ name: target.triggerName, data: invocation.trigger }];
    for (const [name, binding] of Object.entries(target.metadata.bindings)) {
      if (binding.direction === 'in' && isDurableClient(binding.type)) {
        inputData.push({ name, data: { string: this.#clientBinding() } });
      }
    }
    return {
      invocationId: randomUUID(),
      functionId: target.id,
      inputData,
      triggerMetadata: invocation.triggerMetadata ?? {},
      traceContext: {
        traceParent: `00-${randomHex()}-${randomHex().slice(0, 16)}-00`,
        traceState: '',
        attributes: {},
      },
    };
  }

  #logUser(
    level: string,
    category: string,
    message: string,
    details: { function: string; invocationId: string },
  ): void {
    const record = { level, message, category, hookData: {}, appHookData: this.#appHookData };
    for (const hook of this.#registry.hooks('log')) hook(record);
    this.#log.write(record.level, record.message, { category, ...details });
  }

  async #withTimeout<T>(target: RegisteredFunction, work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const message = `Timeout value of ${formatTimeSpan(this.#timeoutMs)} was exceeded by function: Functions.${target.name}`;
      timer = setTimeout(() => reject(new FunctionTimeoutError(message)), this.#timeoutMs);
    });
    try {
      return await Promise.race([work, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function randomHex(): string {
  return randomUUID().replaceAll('-', '');
}

export function isDurableClient(bindingType: string): boolean {
  const type = bindingType.toLowerCase();
  return type === 'durableclient' || type === 'orchestrationclient';
}
