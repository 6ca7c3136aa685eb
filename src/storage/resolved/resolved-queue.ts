/**
 * The queue port over single requests. Delivery is at least once: a send whose response was lost is sent again, so a
 * message may only wake somebody, never carry the truth.
 */

import { QUEUE_RECEIVE_MAX } from '../../limits.ts';
import { type AttemptTiming, attemptRequest } from '../attempts.ts';
import type { Queue, ReceivedMessage } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { QueueRequests } from '../requests.ts';

export class ResolvedQueue implements Queue {
  readonly #requests: QueueRequests;
  readonly #timing: AttemptTiming;

  constructor(requests: QueueRequests, timing: AttemptTiming) {
    this.#requests = requests;
    this.#timing = timing;
  }

  get name(): string {
    return this.#requests.name;
  }

  async createIfMissing(): Promise<void> {
    await this.#attempt('create', () => this.#requests.createQueue());
  }

  async send(text: string, options: { readonly delaySeconds?: number } = {}): Promise<void> {
    await this.#attempt('send to', () => this.#requests.send(text, options.delaySeconds ?? 0));
  }

  async receive(options: {
    readonly max: number;
    readonly invisibleSeconds: number;
  }): Promise<readonly ReceivedMessage[]> {
    const max = Math.min(options.max, QUEUE_RECEIVE_MAX);
    return await this.#attempt('receive from', () => this.#requests.receive(max, options.invisibleSeconds));
  }

  async delete(message: Pick<ReceivedMessage, 'id' | 'receipt'>): Promise<void> {
    await this.#attempt('delete a message of', async () => {
      try {
        await this.#requests.delete(message.id, message.receipt);
      } catch (error) {
        const leftAlone =
          error instanceof StorageRefusal && (error.code === 'MessageNotFound' || error.code === 'PopReceiptMismatch');
        if (!leftAlone) {
          throw error;
        }
      }
    });
  }

  async #attempt<T>(verb: string, once: () => Promise<T>): Promise<T> {
    return await attemptRequest(this.#timing, `${verb} queue ${this.name}`, once);
  }
}
