/** One queue: messages in the order they were sent, each invisible until its time. Every method is one request. */

import type { ReceivedMessage } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { StoreContext } from './blob-store.ts';

interface StoredMessage {
  readonly id: string;
  readonly text: string;
  receipt: string;
  visibleAtMs: number;
  dequeueCount: number;
}

export class QueueStore {
  readonly #context: StoreContext;
  readonly #messages = new Map<string, StoredMessage>();

  constructor(context: StoreContext) {
    this.#context = context;
  }

  get length(): number {
    return this.#messages.size;
  }

  send(text: string, delaySeconds: number): string {
    const id = this.#context.nextEtag();
    const visibleAtMs = this.#nowMs() + delaySeconds * 1000;
    this.#messages.set(id, { id, text, receipt: id, visibleAtMs, dequeueCount: 0 });
    return id;
  }

  receive(max: number, invisibleSeconds: number): readonly ReceivedMessage[] {
    const now = this.#nowMs();
    const received: ReceivedMessage[] = [];
    for (const message of this.#messages.values()) {
      if (received.length === max) {
        break;
      }
      if (message.visibleAtMs <= now) {
        message.visibleAtMs = now + invisibleSeconds * 1000;
        message.dequeueCount += 1;
        message.receipt = this.#context.nextEtag();
        received.push({
          id: message.id,
          text: message.text,
          receipt: message.receipt,
          dequeueCount: message.dequeueCount,
        });
      }
    }
    return received;
  }

  /** Extends or shortens the time a received message stays invisible; the receipt changes. */
  update(id: string, receipt: string, invisibleSeconds: number): string {
    const message = this.#held(id, receipt);
    message.visibleAtMs = this.#nowMs() + invisibleSeconds * 1000;
    message.receipt = this.#context.nextEtag();
    return message.receipt;
  }

  delete(id: string, receipt: string): void {
    this.#held(id, receipt);
    this.#messages.delete(id);
  }

  clear(): void {
    this.#messages.clear();
  }

  #held(id: string, receipt: string): StoredMessage {
    const message = this.#messages.get(id);
    if (message === undefined) {
      throw new StorageRefusal(404, 'MessageNotFound');
    }
    if (message.receipt !== receipt) {
      throw new StorageRefusal(400, 'PopReceiptMismatch');
    }
    return message;
  }

  #nowMs(): number {
    return this.#context.now().getTime();
  }
}
