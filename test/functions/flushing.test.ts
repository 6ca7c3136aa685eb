import { describe, expect, it } from 'vitest';
import { ORCHESTRATION_CHILDREN_MAX, PENDING_AGE_FLUSH_MS } from '../../src/limits.ts';
import { CHUNK_INDEX_PREFIX } from '../../src/repository/blob-names.ts';
import { Archive, file } from '../service/support/archive.ts';
import { Engine } from './support/engine.ts';

describe('flushing', () => {
  it('goes over all roots in groups of at most 16 activities, and says how far it is', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const tarHash = await archive.uploadTar('a tar');
    const texts = Array.from({ length: 900 }, (_, index) => `member ${index}`);
    const members = texts.map((text) => ({ contentHash: archive.hashOf(text) as string, originalSize: text.length }));
    await archive.service.recording.members('photos', tarHash, { runId, members });
    const files = texts.map((text, index) => file(String(index).padStart(4, '0'), archive.hashOf(text)));
    const operationId = await archive.complete(runId, await archive.uploadTree(files), texts.length);
    const roots = new Set(members.map((member) => member.contentHash.slice(0, 2)));
    expect(roots.size).toBeGreaterThan(200);

    const engine = new Engine(archive.service, archive.clock);
    const seen: { phase: string; done: number; total: number }[] = [];
    engine.afterStep = async ({ name }) => {
      if (name === 'flushRoot' || name === 'settleRoot') {
        const { phase, progress } = await archive.service.operations.get('photos', operationId);
        seen.push({ phase, done: progress?.done ?? -1, total: progress?.total ?? -1 });
      }
    };
    await engine.dispatch('photos');
    const operation = await archive.service.operations.get('photos', operationId);
    expect(operation.result).toMatchObject({ entriesRecorded: 900, shardsWritten: roots.size, shardsSplit: 0 });
    expect((await archive.names(CHUNK_INDEX_PREFIX)).length).toBe(roots.size);
    for (const phase of ['flushing', 'settling']) {
      const done = seen.filter((each) => each.phase === phase);
      expect(done.every((each) => each.total === roots.size && each.done >= 1)).toBe(true);
      expect(Math.max(...done.map((each) => each.done))).toBe(roots.size);
    }
    const groups = engine.childrenMax.filter(({ instance }) => instance.split(':').length > 2);
    expect(groups.length).toBeGreaterThan(30);
    expect(Math.max(...groups.map((group) => group.children))).toBeLessThanOrEqual(ORCHESTRATION_CHILDREN_MAX);
  });

  it('FL-06: splits what is too much for one shard, and every entry resolves from a cold service', async () => {
    const archive = await new Archive({ maxShardEntryCount: 2 }).create();
    const runId = await archive.startRun();
    const tarHash = await archive.uploadTar('a tar');
    const texts = Array.from({ length: 700 }, (_, index) => `member ${index}`);
    const members = texts.map((text) => ({ contentHash: archive.hashOf(text) as string, originalSize: text.length }));
    await archive.service.recording.members('photos', tarHash, { runId, members });
    const files = texts.map((text, index) => file(String(index).padStart(4, '0'), archive.hashOf(text)));
    const operationId = await archive.complete(runId, await archive.uploadTree(files), texts.length);
    await new Engine(archive.service, archive.clock).dispatch('photos');
    expect(await archive.service.operations.get('photos', operationId)).toMatchObject({ state: 'succeeded' });
    const depths = (await archive.names(CHUNK_INDEX_PREFIX)).map((name) => name.length - CHUNK_INDEX_PREFIX.length);
    expect(Math.max(...depths)).toBeGreaterThan(2);
    const hashes = members.map((member) => member.contentHash);
    expect((await archive.newService().lookup.lookup('photos', { hashes, purpose: 'restore' })).missing).toEqual([]);
  });

  it('by itself moves entries that have been pending for a day, and publishes nothing', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    await archive.recordLarge(runId, 'of a run that nobody completes');
    expect(await archive.service.housekeeping.queueFlushIfDue('photos')).toBeUndefined();
    archive.clock.advance(PENDING_AGE_FLUSH_MS + 1);
    const queued = await archive.service.housekeeping.queueFlushIfDue('photos');
    expect(queued).toMatchObject({ kind: 'flush', state: 'waiting' });
    expect(await archive.service.housekeeping.queueFlushIfDue('photos')).toBeUndefined();
    await new Engine(archive.service, archive.clock).dispatch('photos');
    const operation = await archive.service.operations.get('photos', queued?.operationId ?? '');
    expect(operation).toMatchObject({ state: 'succeeded', result: { entriesRecorded: 1, shardsWritten: 1 } });
    expect(await archive.pendingRows()).toBe(0);
    expect(await archive.names('snapshots/')).toEqual([]);
    expect(await archive.service.runs.get('photos', runId)).toMatchObject({ state: 'started' });
  });
});
