/**
 * The single requests of one queue, over @azure/storage-queue. Texts travel as base64 of their UTF-8: the encoding
 * that queue triggers expect by default, and the only one that carries every character.
 */

import type { QueueClient } from '@azure/storage-queue';
import type { ReceivedMessage } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { QueueRequests } from '../requests.ts';
import { answered } from './azure-errors.ts';

export class AzureQueueRequests implements QueueRequests {
  readonly name: string;
  readonly #client: QueueClient;

  constructor(client: QueueClient) {
    this.name = client.name;
    this.#client = client;
  }

  async createQueue(): Promise<void> {
    try {
      await answered((abortSignal) => this.#client.create({ abortSignal }));
    } catch (error) {
      // Answered when the queue exists with other metadata; 204 otherwise.
      if (!(error instanceof StorageRefusal && error.code === 'QueueAlreadyExists')) {
        throw error;
      }
    }
  }

  async send(text: string, delaySeconds: number): Promise<void> {
    const encoded = Buffer.from(text, 'utf8').toString('base64');
    await answered((abortSignal) =>
      this.#client.sendMessage(encoded, { abortSignal, visibilityTimeout: delaySeconds }),
    );
  }

  async receive(max: number, invisibleSeconds: number): Promise<readonly ReceivedMessage[]> {
    const { receivedMessageItems } = await answered((abortSignal) =>
      this.#client.receiveMessages({
        abortSignal,
        numberOfMessages: max,
        visibilityTimeout: invisibleSeconds,
      }),
    );
    return receivedMessageItems.map((item) => ({
      id: item.messageId,
      text: Buffer.from(item.messageText, 'base64').toString('utf8'),
      receipt: item.popReceipt,
      dequeueCount: item.dequeueCount,
    }));
  }

  async delete(id: string, receipt: string): Promise<void> {
    await answered((abortSignal) => this.#client.deleteMessage(id, receipt, { abortSignal }));
  }
}
