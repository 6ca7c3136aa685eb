/**
 * Takes messages from one queue and runs the function for each, `batchSize` at a time plus a new batch when half is
 * done. A message is hidden while its function runs, deleted on success, made visible again on failure, and after
 * `maxDequeueCount` failures moved to the poison queue: first put there, then deleted, so that none is lost.
 */

import { type DequeuedMessageItem, type QueueClient, RestError } from '@azure/storage-queue';
import { QUEUE_POLL_MS_MIN, QUEUE_VISIBILITY_MS } from '../../limits.ts';
import type { Invoker } from './invocation.ts';
import type { HostLog } from './log.ts';
import type { RegisteredFunction } from './registry.ts';
import type { RpcData } from './rpc-types.ts';
import type { QueueConfig } from './settings.ts';

export interface QueueListenerParts {
  readonly target: RegisteredFunction;
  readonly queue: QueueClient;
  readonly poisonQueue: QueueClient;
  readonly config: QueueConfig;
  readonly invoker: Invoker;
  readonly log: HostLog;
}

export class QueueListener {
  readonly #parts: QueueListenerParts;
  #running = 0;
  #pollMs = QUEUE_POLL_MS_MIN;
  #timer: NodeJS.Timeout | undefined;
  #polling = false;
  #stopped = false;

  constructor(parts: QueueListenerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#pollSoon(0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #pollSoon(waitMs: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#poll().catch((error: unknown) => this.#parts.log.error('The queue could not be polled', error));
    }, waitMs);
  }

  /** An empty or missing queue is asked less and less often, a full one at once. */
  async #poll(): Promise<void> {
    if (this.#polling || this.#stopped) return;
    this.#polling = true;
    const { config } = this.#parts;
    let received = 0;
    try {
      const messages = await this.#receive(config.batchSize);
      received = messages.length;
      for (const message of messages) this.#take(message);
    } finally {
      this.#polling = false;
      this.#pollMs = received > 0 ? QUEUE_POLL_MS_MIN : Math.min(this.#pollMs * 2, config.maxPollingIntervalMs);
      if (this.#running <= config.newBatchThreshold) this.#pollSoon(received > 0 ? 0 : this.#pollMs);
    }
  }

  async #receive(numberOfMessages: number): Promise<DequeuedMessageItem[]> {
    try {
      const options = { numberOfMessages, visibilityTimeout: QUEUE_VISIBILITY_MS / 1000 };
      return (await this.#parts.queue.receiveMessages(options)).receivedMessageItems;
    } catch (error) {
      if (error instanceof RestError && error.statusCode === 404) return [];
      throw error;
    }
  }

  #take(message: DequeuedMessageItem): void {
    this.#running += 1;
    this.#process(message)
      .catch((error: unknown) => this.#parts.log.error('A queue message was not settled; it will come back', error))
      .finally(() => {
        this.#running -= 1;
        if (this.#running <= this.#parts.config.newBatchThreshold && !this.#polling) this.#pollSoon(0);
      });
  }

  async #process(message: DequeuedMessageItem): Promise<void> {
    const { target, invoker, queue, log, config } = this.#parts;
    if (message.dequeueCount > config.maxDequeueCount) return await this.#poison(message, message.popReceipt);
    const hold = new MessageHold(queue, message, log);
    try {
      const text = config.base64 ? decodeBase64(message.messageText) : message.messageText;
      await invoker.invoke(target, { trigger: { string: text }, triggerMetadata: metadataOf(message, text) });
    } catch (error) {
      log.error('The queue function failed', error, { function: target.name });
      const popReceipt = await hold.release();
      if (message.dequeueCount >= config.maxDequeueCount) return await this.#poison(message, popReceipt);
      const visibilitySeconds = Math.ceil(config.visibilityTimeoutMs / 1000);
      await queue.updateMessage(message.messageId, popReceipt, message.messageText, visibilitySeconds);
      return;
    }
    await queue.deleteMessage(message.messageId, await hold.release());
  }

  async #poison(message: DequeuedMessageItem, popReceipt: string): Promise<void> {
    const { queue, poisonQueue, log, target } = this.#parts;
    await poisonQueue.createIfNotExists();
    await poisonQueue.sendMessage(message.messageText, { messageTimeToLive: -1 });
    await queue.deleteMessage(message.messageId, popReceipt);
    log.warn(`A message failed ${message.dequeueCount} times and is now in ${poisonQueue.name}.`, {
      function: target.name,
    });
  }
}

/** Keeps a message hidden while its function runs; each renewal changes the receipt. */
class MessageHold {
  readonly #timer: NodeJS.Timeout;
  #popReceipt: Promise<string>;

  constructor(queue: QueueClient, message: DequeuedMessageItem, log: HostLog) {
    this.#popReceipt = Promise.resolve(message.popReceipt);
    this.#timer = setInterval(() => {
      this.#popReceipt = this.#popReceipt.then(async (current) => {
        try {
          const seconds = QUEUE_VISIBILITY_MS / 1000;
          const renewed = await queue.updateMessage(message.messageId, current, message.messageText, seconds);
          return renewed.popReceipt ?? current;
        } catch (error) {
          log.error('A queue message could not be kept hidden', error);
          return current;
        }
      });
    }, QUEUE_VISIBILITY_MS / 2);
  }

  async release(): Promise<string> {
    clearInterval(this.#timer);
    return await this.#popReceipt;
  }
}

function metadataOf(message: DequeuedMessageItem, text: string): Record<string, RpcData> {
  return {
    QueueTrigger: { string: text },
    DequeueCount: { json: String(message.dequeueCount) },
    ExpirationTime: { json: JSON.stringify(message.expiresOn) },
    Id: { string: message.messageId },
    InsertionTime: { json: JSON.stringify(message.insertedOn) },
    NextVisibleTime: { json: JSON.stringify(message.nextVisibleOn) },
    PopReceipt: { string: message.popReceipt },
  };
}

function decodeBase64(text: string): string {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
    throw new Error('The message is not base64; send it encoded or set messageEncoding to none in host.json.');
  }
  return Buffer.from(text, 'base64').toString('utf8');
}
