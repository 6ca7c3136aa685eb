/** Storage in Azure (or its emulator): the only door to src/storage/azure. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type AttemptTiming, attemptRequest } from '../attempts.ts';
import type { Storage } from '../ports.ts';
import { ResolvedBlobContainer } from '../resolved/resolved-blob-container.ts';
import { ResolvedQueue } from '../resolved/resolved-queue.ts';
import { ResolvedTable } from '../resolved/resolved-table.ts';
import { AzureBlobRequests } from './azure-blob-requests.ts';
import { type AzureStorageConfig, azureClients } from './azure-clients.ts';
import { answered } from './azure-errors.ts';
import { AzureQueueRequests } from './azure-queue-requests.ts';
import { AzureTableRequests } from './azure-table-requests.ts';

export type { AzureStorageConfig } from './azure-clients.ts';

const TIMING: AttemptTiming = { sleep: (ms) => sleep(ms), random: Math.random };

export function azureStorage(config: AzureStorageConfig): Storage {
  const clients = azureClients(config);
  return {
    container: (name) => new ResolvedBlobContainer(new AzureBlobRequests(clients, name), TIMING),
    appendBlobs: (containerName) => new ResolvedBlobContainer(new AzureBlobRequests(clients, containerName), TIMING),
    table: (name) => new ResolvedTable(new AzureTableRequests(clients.table(name)), TIMING),
    queue: (name) => new ResolvedQueue(new AzureQueueRequests(clients.queues.getQueueClient(name)), TIMING),
    listContainersPage: (prefix, continuation) =>
      attemptRequest(TIMING, 'list containers', () =>
        answered(async (abortSignal) => {
          const pages = clients.blobs
            .listContainers({ abortSignal, prefix })
            .byPage(continuation === undefined ? {} : { continuationToken: continuation });
          const page = (await pages.next()).value;
          return {
            names: (page?.containerItems ?? []).map((item: { name: string }) => item.name),
            continuation: page?.continuationToken || undefined,
          };
        }),
      ),
  };
}
