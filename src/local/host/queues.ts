/** Queue triggers: one listener per function, on the queue its binding names. */

import { QueueServiceClient } from '@azure/storage-queue';
import { QueueListener, type QueueListenerParts } from './queue-listener.ts';
import { type FunctionRegistry, type RegisteredFunction, RegistrationError } from './registry.ts';
import { replaceSettings } from './settings.ts';

export type QueueParts = Omit<QueueListenerParts, 'target' | 'queue' | 'poisonQueue'> & {
  readonly registry: FunctionRegistry;
};

export class QueueTriggers {
  readonly #listeners: readonly QueueListener[];

  constructor(parts: QueueParts) {
    const { registry, ...common } = parts;
    this.#listeners = registry.ofTrigger('queueTrigger').map((target) => {
      const service = QueueServiceClient.fromConnectionString(connectionStringOf(target));
      const name = replaceSettings(String(target.trigger.queueName), process.env);
      const queue = service.getQueueClient(name);
      return new QueueListener({ ...common, target, queue, poisonQueue: service.getQueueClient(`${name}-poison`) });
    });
  }

  start(): void {
    for (const listener of this.#listeners) listener.start();
  }

  stop(): void {
    for (const listener of this.#listeners) listener.stop();
  }
}

function connectionStringOf(target: RegisteredFunction): string {
  const { connection } = target.trigger;
  const name = typeof connection === 'string' && connection !== '' ? connection : 'AzureWebJobsStorage';
  const value = process.env[name] ?? process.env[`AzureWebJobs${name}`];
  if (value !== undefined) return value;
  throw new RegistrationError(`${target.name}: there is no setting ${name} with a storage connection string.`);
}
