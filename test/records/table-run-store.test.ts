import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../src/records/run-store.ts';
import { TableRunStore } from '../../src/records/table-run-store.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';

const started: RunRecord = {
  repository: 'photos',
  runId: '0190a5b8-0000-7000-8000-000000000001',
  source: 'nas:/photos',
  tier: 'cool',
  state: 'started',
  startedAt: new Date('2026-05-01T12:00:00.000Z'),
  lastActiveAt: new Date('2026-05-01T12:00:00.000Z'),
  restarted: false,
  newestSnapshot: null,
  completion: null,
  operationId: null,
  snapshot: null,
};

async function newStore(): Promise<TableRunStore> {
  const table = new MemoryStorage().table('runs');
  await table.createIfMissing();
  return new TableRunStore(table);
}

async function stored(
  store: TableRunStore,
  run: RunRecord,
): Promise<NonNullable<Awaited<ReturnType<typeof store.get>>>> {
  await store.insert(run);
  const found = await store.get(run.repository, run.runId);
  if (found === undefined) {
    throw new Error('The run is not there');
  }
  return found;
}

describe('runs in a table', () => {
  it('come back as they were written', async () => {
    const store = await newStore();
    const run = await stored(store, { ...started, newestSnapshot: '2026-04-01T000000.000Z' });
    expect(run).toEqual({ ...started, newestSnapshot: '2026-04-01T000000.000Z', etag: run.etag });
    const completion = { rootHash: 'ab'.repeat(32), fileCount: 3, originalSize: 5_000_000_000 };
    const completing = await store.update(run, { state: 'completing', completion, operationId: 'complete-1' });
    expect(await store.get('photos', run.runId)).toEqual(completing);
    expect(completing).toMatchObject({ completion, operationId: 'complete-1' });
  });

  it('are inserted once', async () => {
    const store = await newStore();
    expect(await store.insert(started)).toBe('inserted');
    expect(await store.insert({ ...started, source: 'other' })).toBe('exists');
    expect((await store.get('photos', started.runId))?.source).toBe('nas:/photos');
  });

  it('change only by the ETag that was read', async () => {
    const store = await newStore();
    const run = await stored(store, started);
    expect(await store.update(run, { restarted: true })).toMatchObject({ restarted: true });
    expect(await store.update(run, { state: 'failed' })).toBeUndefined();
    expect((await store.get('photos', run.runId))?.state).toBe('started');
  });

  it('are listed as open until they end, each repository by itself', async () => {
    const store = await newStore();
    const run = await stored(store, started);
    await store.insert({ ...started, runId: '0190a5b8-0000-7000-8000-000000000002' });
    await store.insert({ ...started, repository: 'photos-two', runId: '0190a5b8-0000-7000-8000-000000000003' });
    expect((await store.openRuns('photos')).map((open) => open.runId.at(-1))).toEqual(['1', '2']);
    const failed = await store.update(run, { state: 'failed' });
    expect((await store.openRuns('photos')).map((open) => open.runId.at(-1))).toEqual(['2']);
    if (failed !== undefined) {
      await store.update(failed, { state: 'completing' });
    }
    expect((await store.openRuns('photos')).map((open) => open.runId.at(-1))).toEqual(['1', '2']);
  });

  it('marks as recovered what an earlier run of the same source left, and nothing else', async () => {
    const store = await newStore();
    const later = new Date(started.startedAt.getTime() + 1000);
    await store.insert(started);
    await store.insert({ ...started, runId: '0190a5b8-0000-7000-8000-000000000002', source: 'other' });
    await store.insert({ ...started, runId: '0190a5b8-0000-7000-8000-000000000003', startedAt: later });
    await store.markRecovered('photos', 'nas:/photos', later);
    expect((await store.openRuns('photos')).map((open) => open.recovered)).toEqual([true, false, false]);
  });
});
