/**
 * Waking the orchestrations of a repository. The rows are the truth: a wake only makes somebody look at them. It may come
 * twice, or for nothing, or be lost; the timer wakes whatever waits.
 */

import type { DurableClient } from 'durable-functions';
import type { Service } from '../src/service/service.ts';
import { ORCHESTRATOR } from './orchestration.ts';

export function dispatcherInstanceOf(repository: string): string {
  return `dispatcher-${repository}`;
}

/** Ids of instances are letters, digits, `-`, `_` and `:`. */
export function commitInstanceOf(repository: string, operationId: string): string {
  return `${repository}:${operationId}`;
}

export async function wakeRepository(service: Service, client: DurableClient, repository: string): Promise<void> {
  const { dispatcher, commits } = await service.housekeeping.waitingWork(repository);
  if (dispatcher) {
    await startUnlessRunning(client, ORCHESTRATOR.dispatcher, dispatcherInstanceOf(repository), { repository });
  }
  for (const operationId of commits) {
    const instanceId = commitInstanceOf(repository, operationId);
    await startUnlessRunning(client, ORCHESTRATOR.commitChunk, instanceId, { repository, operationId });
  }
}

async function startUnlessRunning(
  client: DurableClient,
  orchestrator: string,
  instanceId: string,
  input: Readonly<Record<string, string>>,
): Promise<void> {
  try {
    await client.startNew(orchestrator, { instanceId, input });
  } catch (error) {
    // The engine refuses a running id with a 500 that says so in words alone. It looks at the rows again by itself.
    if (!(error instanceof Error && /already exists/i.test(error.message))) {
      throw error;
    }
  }
}
