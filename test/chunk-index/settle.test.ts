import { describe, expect, it } from 'vitest';
import type { ChunkIndex } from '../../src/chunk-index/chunk-index.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import { describeLayout, freshLayout, layoutOf, textOf } from './readers.ts';
import { entries, entryOf, hash, World, type WorldOptions } from './world.ts';

const JOB = { jobId: 'job', owner: 'test' };

/** Flushed, and the layout version bumped: ready to settle. */
async function flushed(
  list: readonly ShardEntry[],
  options: WorldOptions = {},
): Promise<{ world: World; index: ChunkIndex }> {
  const world = await World.create(options);
  const index = world.index();
  await world.pending.record(list);
  await index.flushRoot('aa', JOB);
  world.version = { ...world.version, layoutVersion: 1 };
  return { world, index };
}

async function pendingHashes(world: World): Promise<string[]> {
  return (await world.pending.page('aa')).rows.map((row) => row.entry.contentHash);
}

async function replaceShard(world: World, prefix: string, list: readonly ShardEntry[]): Promise<void> {
  const stored = await world.container.head(`chunk-index/${prefix}`);
  await world.container.write(`chunk-index/${prefix}`, await world.codec.encode(Buffer.from(textOf(list))), {
    condition: stored === undefined ? { absent: true } : { etag: stored.etag },
    contentType: 'application/zstd',
  });
}

describe('settling a root', () => {
  it('removes the rows the manifest names, without reading a shard or a row', async () => {
    const { world, index } = await flushed(entries(250, 'aa'));
    world.watch();
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 250, remaining: 0, flushAgain: false });
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 0, writes: 0, deletes: 0 });
    expect(world.count('row-batch')).toBe(3);
    expect(world.count('row-query') + world.count('row-read')).toBe(0);
    expect(await pendingHashes(world)).toEqual([]);
  });

  it('on another instance, cold, does the same', async () => {
    const { world } = await flushed(entries(50, 'aa'), { maxShardEntryCount: 8 });
    expect(await world.index().settleRoot('aa', JOB)).toEqual({ settled: 50, remaining: 0, flushAgain: false });
  });

  it('run twice finds nothing left to do', async () => {
    const { world, index } = await flushed(entries(120, 'aa'));
    await index.settleRoot('aa', JOB);
    expect(await world.index().settleRoot('aa', JOB)).toEqual({ settled: 0, remaining: 0, flushAgain: false });
  });

  it('invariant 2: a row recorded after the flush is not touched, although its shard has the right ETag', async () => {
    const { world, index } = await flushed(entries(5, 'aa'));
    const later = entryOf(hash(99, 'aa'));
    await world.pending.record([later]);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 5, remaining: 0, flushAgain: false });
    expect(await pendingHashes(world)).toEqual([later.contentHash]);
  });

  it('invariant 2: a row recorded again after the flush stays, with its new facts', async () => {
    const list = entries(5, 'aa');
    const { world, index } = await flushed(list);
    const [changed] = list.slice(2);
    if (changed === undefined) throw new Error('an entry');
    const newer = entryOf(changed.contentHash, { tier: 'archive' });
    await world.pending.record([newer]);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 4, remaining: 1, flushAgain: false });
    expect((await world.pending.page('aa')).rows.map((row) => row.entry)).toEqual([newer]);
  });

  it('invariant 2: rewritten since, the shard is read and searched, and only what it holds is removed', async () => {
    const list = entries(5, 'aa');
    const { world, index } = await flushed(list);
    // Another client that overwrites without conditions: the loss is noticed, the rows stay.
    await replaceShard(world, 'aa', list.slice(0, 3));
    world.watch();
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 3, remaining: 2, flushAgain: true });
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 1 });
    expect(await pendingHashes(world)).toEqual(list.slice(3).map((entry) => entry.contentHash));
  });

  it('another entry of the same hash is not the row’s', async () => {
    const [first, ...rest] = entries(3, 'aa');
    if (first === undefined) throw new Error('an entry');
    const { world, index } = await flushed([first, ...rest]);
    await replaceShard(world, 'aa', [entryOf(first.contentHash, { chunkSize: 1 }), ...rest]);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 2, remaining: 1, flushAgain: true });
    expect(await pendingHashes(world)).toEqual([first.contentHash]);
  });

  it('in a rewritten shard, a row recorded again is left alone and asks for no further flush', async () => {
    const list = entries(3, 'aa');
    const { world, index } = await flushed(list);
    await replaceShard(world, 'aa', [...list, entryOf(hash(70, 'aa'))]);
    await world.pending.record(list.slice(0, 1));
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 2, remaining: 1, flushAgain: false });
  });

  it('a shard that is gone: the rows stay and the root is flushed again', async () => {
    const { world, index } = await flushed(entries(5, 'aa'));
    const stored = await world.container.head('chunk-index/aa');
    await world.container.delete('chunk-index/aa', { etag: stored?.etag ?? '' });
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 0, remaining: 5, flushAgain: true });
    await index.flushRoot('aa', JOB);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 5, remaining: 0, flushAgain: false });
  });

  it('two shards on a path: those rows stay until the root was flushed again', async () => {
    const list = [...entries(3, 'aa3'), ...entries(4, 'aa5')];
    const { world, index } = await flushed(list);
    await replaceShard(world, 'aa3', [entryOf(hash(80, 'aa3'))]);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 4, remaining: 3, flushAgain: true });
    await index.flushRoot('aa', JOB);
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 3, remaining: 0, flushAgain: false });
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...list, entryOf(hash(80, 'aa3'))], 1024));
  });

  it('an entry that a later flush moved into a leaf is found there', async () => {
    const list = entries(6, 'aa');
    const { world, index } = await flushed(list, { maxShardEntryCount: 8 });
    await world.pending.record(entries(20, 'aa', 50));
    await world.index().flushRoot('aa', { jobId: 'another job', owner: 'test' });
    expect(await index.settleRoot('aa', JOB)).toEqual({ settled: 6, remaining: 0, flushAgain: false });
    expect(await pendingHashes(world)).toHaveLength(20);
  });

  it('without a manifest nothing is removed and the root is flushed again', async () => {
    const { world, index } = await flushed(entries(5, 'aa'));
    expect(await index.settleRoot('aa', { jobId: 'unknown', owner: 'test' })).toEqual({
      settled: 0,
      remaining: 0,
      flushAgain: true,
    });
    expect(await pendingHashes(world)).toHaveLength(5);
  });

  it('what settle validated costs the next lookup nothing, also after publication', async () => {
    const list = entries(30, 'aa');
    const { world, index } = await flushed(list, { maxShardEntryCount: 8 });
    await index.settleRoot('aa', JOB);
    world.publish(index);
    world.watch();
    expect((await index.lookup(list.map((entry) => entry.contentHash))).size).toBe(30);
    expect(world.shardRequests()).toEqual({ lists: 0, reads: 0, writes: 0, deletes: 0 });
  });

  it('a claim carries the version read before the listing: a bump in between makes it worthless', async () => {
    const list = entries(3, 'aa');
    const { world, index } = await flushed(list);
    world.storage.onRequest = (request) => {
      if (request.kind === 'blob-list' && request.phase === 'before') {
        world.version = { ...world.version, layoutVersion: 2 };
      }
    };
    await index.settleRoot('aa', JOB);
    world.watch();
    expect((await index.lookup(list.map((entry) => entry.contentHash))).size).toBe(3);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 0 });
  });
});
