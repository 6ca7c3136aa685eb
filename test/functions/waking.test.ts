import type { DurableClient } from 'durable-functions';
import { describe, expect, it } from 'vitest';
import './support/functions-core.ts';
import { eachRepository } from '../../functions/each-repository.ts';
import { wakeRepository } from '../../functions/wake.ts';
import { JOB_SILENT_MS, STAGED_BLOCK_BYTES } from '../../src/limits.ts';
import { Archive } from '../service/support/archive.ts';

const ALREADY =
  'The operation failed with an unexpected status code: 500. Details: An Orchestration instance with the status Running already exists.';

/** A client of the engine that notes what it was asked to start. */
function client(started: unknown[], refuse?: string): DurableClient {
  return {
    startNew: (name: string, options: unknown) => {
      started.push([name, options]);
      return refuse === undefined ? Promise.resolve('id') : Promise.reject(new Error(refuse));
    },
  } as unknown as DurableClient;
}

async function waitingWork(): Promise<{ archive: Archive; runId: string }> {
  const archive = await new Archive().create();
  const runId = await archive.startRun();
  const contentHash = archive.hashOf('gigabytes');
  const stagingName = `photos/uploads/${runId}/${contentHash}`;
  const facts = { runId, stagingName, originalSize: 1, chunkSize: STAGED_BLOCK_BYTES };
  await archive.service.assembly.request('photos', contentHash, facts);
  await archive.complete(runId, null, 0);
  return { archive, runId };
}

describe('waking a repository', () => {
  it('starts its dispatcher and what runs beside it, under fixed ids', async () => {
    const { archive, runId } = await waitingWork();
    const started: unknown[] = [];
    await wakeRepository(archive.service, client(started), 'photos');
    const operationId = `commit-${runId}-${archive.hashOf('gigabytes').slice(0, 32)}`;
    expect(started).toEqual([
      ['dispatcher', { instanceId: 'dispatcher-photos', input: { repository: 'photos' } }],
      ['commitChunk', { instanceId: `photos:${operationId}`, input: { repository: 'photos', operationId } }],
    ]);
    for (const [, { instanceId }] of started as [string, { instanceId: string }][]) {
      expect(instanceId).toMatch(/^[A-Za-z0-9_:-]{1,256}$/);
    }
  });

  it('takes "already exists" for running, and nothing else', async () => {
    const { archive } = await waitingWork();
    await wakeRepository(archive.service, client([], ALREADY), 'photos');
    const failing = wakeRepository(archive.service, client([], 'status code: 500. Details: no storage'), 'photos');
    await expect(failing).rejects.toThrow('no storage');
  });

  it('leaves a job alone that says how far it is, and asks after a silent one', async () => {
    const { archive } = await waitingWork();
    const beganAtMs = archive.clock.now().getTime();
    await archive.service.steps.takeNext('photos', { owner: 'dispatcher-photos', beganAtMs });
    expect((await archive.service.housekeeping.waitingWork('photos')).dispatcher).toBe(false);
    archive.clock.advance(JOB_SILENT_MS + 1);
    expect((await archive.service.housekeeping.waitingWork('photos')).dispatcher).toBe(true);
  });

  it('has nothing to start where nothing waits', async () => {
    const archive = await new Archive().create();
    const started: unknown[] = [];
    await wakeRepository(archive.service, client(started), 'photos');
    expect(started).toEqual([]);
  });
});

describe('looking after every repository', () => {
  it('passes over one that cannot be, and says so', async () => {
    const archive = await new Archive().create();
    await archive.service.repositories.create({ name: 'videos', kind: 'plain' });
    const seen: string[] = [];
    const warned: unknown[] = [];
    const log = {
      error: (...parts: unknown[]) => void warned.push(parts),
      warn: (...parts: unknown[]) => void warned.push(parts),
    };
    await eachRepository(archive.service, log, (repository) => {
      seen.push(repository);
      return repository === 'photos' ? Promise.reject(new Error('broken')) : Promise.resolve();
    });
    expect(seen).toEqual(['photos', 'videos']);
    expect(JSON.stringify(warned)).toContain('photos was passed over');
  });
});
