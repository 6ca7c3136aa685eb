import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONDITIONAL_WRITE_RETRIES_MAX,
  FLUSH_WORKERS,
  PREFIX_LOAD_WORKERS,
  ROOT_CLAIM_DURATION_MS,
} from '../../src/limits.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import { describeLayout, freshLayout, layoutOf, parentWins, textOf } from './readers.ts';
import { entries, entryOf, hash, hashesOf, World, type WorldOptions } from './world.ts';

const JOB = { jobId: 'job', owner: 'test' };

async function worldWith(list: readonly ShardEntry[], options: WorldOptions = {}): Promise<World> {
  const world = await World.create(options);
  await world.pending.record(list);
  await world.complete(world.index());
  return world;
}

async function writeShard(world: World, prefix: string, list: readonly ShardEntry[]): Promise<void> {
  const body = await world.codec.encode(Buffer.from(textOf(list)));
  await world.container.write(`chunk-index/${prefix}`, body, {
    condition: { absent: true },
    contentType: 'application/zstd',
  });
}

async function expectAllFound(world: World, list: readonly ShardEntry[]): Promise<void> {
  const found = await world.index().lookup(hashesOf(list));
  expect([...found.values()].map((entry) => entry.contentHash).sort()).toEqual(hashesOf(list).sort());
}

describe('merging', () => {
  it('FL-01: pending entries are merged into the existing shard', async () => {
    const old = entries(3, 'aa');
    const world = await worldWith(old);
    const added = entries(3, 'aa', 50);
    await world.pending.record(added);
    world.watch();
    await world.complete(world.index());
    expect(world.shardRequests()).toMatchObject({ reads: 1, writes: 1, deletes: 0 });
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...added], 1024));
  });

  it('FL-02, FL-03, FL-04: after a flush, recording, flushing and looking up go on: the service is not single-shot', async () => {
    const world = await World.create();
    const index = world.index();
    const all: ShardEntry[] = [];
    for (const from of [0, 10, 20]) {
      const some = entries(3, 'aa', from);
      await world.pending.record(some);
      await world.complete(index);
      all.push(...some);
      expect((await index.lookup(hashesOf(all))).size).toBe(all.length);
    }
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(all, 1024));
  });

  it('FL-05: a flush reports its counts', async () => {
    const world = await worldWith(entries(6, 'aa'), { maxShardEntryCount: 8 });
    await world.pending.record([...entries(6, 'aa', 50), ...entries(2, 'ab')]);
    const index = world.index();
    const split = await index.flushRoot('aa', JOB);
    expect(split).toMatchObject({ rowsRead: 6, shardsRead: 1, shardsSplit: 1, shardsDeleted: 1 });
    expect(split.shardsWritten).toBe((await world.shardNames()).length);
    expect(split.bytesRead).toBeGreaterThan(0);
    expect(split.bytesWritten).toBeGreaterThan(0);
    expect(await index.flushRoot('ab', JOB)).toMatchObject({ rowsRead: 2, shardsRead: 0, shardsWritten: 1 });
  });

  it('the newest fact wins: pending over shard', async () => {
    const [old, ...rest] = entries(3, 'aa');
    if (old === undefined) throw new Error('an entry');
    const world = await worldWith([old, ...rest]);
    const newer = entryOf(old.contentHash, { tier: 'archive', chunkSize: 7 });
    await world.pending.record([newer]);
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([newer, ...rest], 1024));
  });

  it('of one hash in a parent and a deeper shard, the parent’s entry is kept', async () => {
    const old = entries(3, 'aa');
    const world = await worldWith(old);
    const stale = old.map((entry) => entryOf(entry.contentHash, { tier: 'archive' }));
    for (const entry of stale) {
      await writeShard(world, entry.contentHash.slice(0, 5), [entry]);
    }
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(old, 1024));
  });

  it('a flush that runs twice writes once', async () => {
    const world = await World.create({ maxShardEntryCount: 8 });
    await world.pending.record(entries(40, 'aa'));
    await world.index().flushRoot('aa', JOB);
    const before = await layoutOf(world);
    world.watch();
    expect(await world.index().flushRoot('aa', JOB)).toMatchObject({
      rowsRead: 40,
      shardsWritten: 0,
      shardsDeleted: 0,
    });
    expect(world.shardRequests()).toMatchObject({ lists: 1, writes: 0, deletes: 0 });
    expect(await layoutOf(world)).toEqual(before);
  });

  it('a root with nothing to do stays untouched', async () => {
    const world = await worldWith(entries(3, 'aa'));
    world.watch();
    expect(await world.index().flushRoot('aa', JOB)).toMatchObject({ rowsRead: 0, shardsRead: 0, shardsWritten: 0 });
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 0, writes: 0, deletes: 0 });
  });

  it('finds the roots with pending entries and those with an interrupted split', async () => {
    const world = await worldWith([...entries(3, 'aa'), ...entries(3, 'bb'), ...entries(3, 'cc')]);
    await writeShard(world, 'bb3', entries(1, 'bb3'));
    await world.pending.record([...entries(2, 'dd'), ...entries(2, '11')]);
    expect(await world.index().rootsToFlush()).toEqual(['11', 'bb', 'dd']);
  });

  it('refuses what is not a root', async () => {
    const world = await World.create();
    await expect(world.index().flushRoot('aa3', JOB)).rejects.toMatchObject({ code: 'bad-request' });
    await expect(world.index().settleRoot('zz', JOB)).rejects.toMatchObject({ code: 'bad-request' });
  });
});

describe('splitting', () => {
  it('FL-06, invariant 4: all non-empty children are up before anything is deleted, and the parent goes last', async () => {
    const old = entries(6, 'aa');
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    const added = entries(20, 'aa', 50);
    await world.pending.record(added);
    world.watch();
    await world.complete(world.index());
    const changes = world.requests.filter((request) => /^blob-(write|delete) photos/.test(request));
    expect(changes.at(-1)).toBe('blob-delete photos/chunk-index/aa');
    expect(changes.slice(0, -1).every((change) => change.startsWith('blob-write'))).toBe(true);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...added], 8));
    await expectAllFound(world, [...old, ...added]);
  });

  it('FL-07: a child above the threshold: only deeper leaves are ever written, three levels down', async () => {
    const list = [...entries(30, 'aa1111'), ...entries(5, 'aa2')];
    const world = await World.create({ maxShardEntryCount: 8 });
    await world.pending.record(list);
    world.watch();
    await world.complete(world.index());
    const names = await world.shardNames();
    expect(names.every((name) => name === 'aa2' || name.length >= 7)).toBe(true);
    expect(world.shardRequests()).toMatchObject({ writes: names.length, deletes: 0 });
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(list, 8));
    await expectAllFound(world, list);
  });

  it('FL-08: a split that dies after its first child: the parent still answers, and a retry converges', async () => {
    const old = entries(8, 'aa');
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    const added = entries(8, 'aa', 50);
    await world.pending.record(added);
    let writes = 0;
    world.storage.onRequest = (request) => {
      if (request.kind === 'blob-write' && request.phase === 'before') {
        writes += 1;
        if (writes > 1) throw new Error('killed');
      }
    };
    await expect(world.index().flushRoot('aa', JOB)).rejects.toThrow('killed');
    world.storage.onRequest = undefined;
    const torn = await layoutOf(world);
    expect(torn.size).toBe(2);
    expect(old.every((entry) => parentWins(torn, entry.contentHash) !== undefined)).toBe(true);
    await expectAllFound(world, [...old, ...added]);
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...added], 8));
  });

  it('FL-09: an entry of an empty child range of a split root: one new child, nothing deleted, no parent', async () => {
    const old = [...entries(5, 'aa1'), ...entries(5, 'aa2')];
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    await world.pending.record(entries(1, 'aa9'));
    world.watch();
    await world.complete(world.index());
    expect(world.shardRequests()).toMatchObject({ reads: 0, writes: 1, deletes: 0 });
    expect(await world.shardNames()).toEqual(['aa1', 'aa2', 'aa9']);
  });

  it('FL-10: a stale child of another client in the range that is split is merged and deleted, before the parent', async () => {
    const old = entries(8, 'aa');
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    const foreign = entryOf(hash(77, 'aa30'));
    await writeShard(world, 'aa30', [foreign]);
    const added = entries(8, 'aa', 50);
    await world.pending.record(added);
    world.watch();
    await world.complete(world.index());
    const deletes = world.requests.filter((request) => request.startsWith('blob-delete photos'));
    expect(deletes).toEqual(['blob-delete photos/chunk-index/aa30', 'blob-delete photos/chunk-index/aa']);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...added, foreign], 8));
  });

  it('FL-11: an empty range is split without deletes', async () => {
    const world = await World.create({ maxShardEntryCount: 8 });
    await world.pending.record(entries(40, 'aa'));
    world.watch();
    await world.index().flushRoot('aa', JOB);
    // One listing to merge by, one to see that nobody else was here.
    expect(world.shardRequests()).toMatchObject({ lists: 2, reads: 0, deletes: 0 });
  });

  it('an interrupted split is healed by a flush that has no rows for it', async () => {
    const old = entries(4, 'aa');
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    const foreign = [entryOf(hash(77, 'aa3')), entryOf(hash(78, 'aa30'))];
    await writeShard(world, 'aa3', foreign.slice(0, 1));
    await writeShard(world, 'aa30', foreign.slice(1));
    await world.complete(world.index());
    // All fits the parent again: it is replaced, and the deeper ones go, deepest first.
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...foreign], 8));
    expect(await world.index().rootsToFlush()).toEqual([]);
  });

  it('a shard that no client split is split when it is touched', async () => {
    const old = entries(40, 'aa');
    const world = await World.create({ maxShardEntryCount: 8 });
    await writeShard(world, 'aa', old);
    const added = entries(1, 'aa', 90);
    await world.pending.record(added);
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...added], 8));
  });

  it('invariant 5: random sets, flushed in random portions, end in the layout of one fresh flush', async () => {
    const portion = fc.array(fc.integer({ min: 0, max: 150 }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(portion, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        async (portions, max, oneInstance) => {
          const world = await World.create({ maxShardEntryCount: max });
          const warm = world.index();
          const all: ShardEntry[] = [];
          for (const portionOf of portions) {
            // Two roots, one of them lopsided.
            const some = portionOf.map((n) => entryOf(hash(n, n % 3 === 0 ? 'aa1' : 'ab'), { chunkSize: all.length }));
            await world.pending.record(some);
            await world.complete(oneInstance ? warm : world.index());
            all.push(...some);
          }
          expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(all, max));
          expect((await world.pending.census()).rows).toBe(0);
          expect((await warm.lookup(hashesOf(all))).size).toBe(new Set(hashesOf(all)).size);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('the portions may be anything between two flushes: what a shard holds already costs no write', async () => {
    const world = await World.create();
    const list = entries(20, 'aa');
    await world.pending.record(list);
    await world.complete(world.index());
    await world.pending.record(list);
    world.watch();
    await world.complete(world.index());
    expect(world.shardRequests()).toMatchObject({ writes: 0, deletes: 0 });
    expect((await world.pending.census()).rows).toBe(0);
  });
});

describe('memory and many rows', () => {
  it('invariant 7: uploads and loads in flight are bounded, over all roots an instance flushes', async () => {
    const roots = ['aa', 'bb', 'cc', 'dd'];
    const world = await worldWith(
      roots.flatMap((root) => entries(120, root)),
      { maxShardEntryCount: 3 },
    );
    await world.pending.record(roots.flatMap((root) => entries(240, root, 500)));
    const inFlight = { 'blob-write': 0, 'blob-read': 0 };
    const most = { 'blob-write': 0, 'blob-read': 0 };
    world.storage.onRequest = async ({ kind, name, phase }) => {
      if ((kind === 'blob-write' || kind === 'blob-read') && name.startsWith('chunk-index/')) {
        inFlight[kind] += phase === 'before' ? 1 : -1;
        most[kind] = Math.max(most[kind], inFlight[kind]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const index = world.index();
    await Promise.all(roots.map((root) => index.flushRoot(root, JOB)));
    expect(most['blob-write']).toBeLessThanOrEqual(FLUSH_WORKERS);
    expect(most['blob-write']).toBeGreaterThan(FLUSH_WORKERS / 2);
    // Of each root, those ahead and the one that is needed.
    expect(most['blob-read']).toBeLessThanOrEqual(roots.length * (PREFIX_LOAD_WORKERS + 1));
    expect(most['blob-read']).toBeGreaterThan(PREFIX_LOAD_WORKERS);
  });

  it('reads rows a page at a time and holds no root', async () => {
    const list = entries(2_500, 'aa');
    const world = await worldWith(list);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(list, 1024));
    await expectAllFound(world, list);
  });
});

describe('the claim', () => {
  it('is two requests to the table, and given back', async () => {
    const world = await World.create();
    await world.pending.record(entries(3, 'aa'));
    world.watch();
    await world.index().flushRoot('aa', JOB);
    expect(world.requests.filter((request) => request.endsWith('~claim'))).toEqual([
      'row-insert pending/photos_aa/~claim',
      'row-delete pending/photos_aa/~claim',
    ]);
  });

  it('is renewed while a flush goes on for longer than it lasts', async () => {
    const world = await World.create({ maxShardEntryCount: 2 });
    const list = entries(600, 'aa');
    await world.pending.record(list);
    world.watch();
    const counting = world.storage.onRequest;
    world.storage.onRequest = async (request) => {
      await counting?.(request);
      if (request.kind === 'blob-write' && request.phase === 'after') world.clock.advance(ROOT_CLAIM_DURATION_MS / 200);
    };
    await world.index().flushRoot('aa', JOB);
    expect(world.count('row-replace')).toBeGreaterThan(1);
    expect(world.count('row-insert')).toBe(1);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(list, 2));
  });

  it('of somebody else is waited for', async () => {
    const world = await World.create();
    await world.pending.record(entries(3, 'aa'));
    await world.pending.claimRoot('aa', 'a flush that died', world.clock.now());
    await world.index().flushRoot('aa', JOB);
    expect(await world.shardNames()).toEqual(['aa']);
  });

  it('of somebody who keeps renewing it: pending-not-flushed, and the rows stay', async () => {
    const world = await World.create();
    await world.pending.record(entries(3, 'aa'));
    let claim = await world.pending.claimRoot('aa', 'a long flush', world.clock.now());
    world.storage.onRequest = async (request) => {
      if (request.kind === 'row-insert' && request.phase === 'before' && claim !== undefined) {
        claim = await world.pending.renewClaim(claim, world.clock.now());
        expect(claim).toBeDefined();
      }
    };
    await expect(world.index().flushRoot('aa', JOB)).rejects.toMatchObject({ code: 'pending-not-flushed' });
    world.storage.onRequest = undefined;
    expect((await world.pending.census()).rows).toBe(3);
    expect(await world.shardNames()).toEqual([]);
  });

  it('invariant 9: shards that change at every attempt: pending-not-flushed after a bounded number, and the rows stay', async () => {
    const world = await worldWith(entries(3, 'aa'));
    await world.pending.record(entries(3, 'aa', 50));
    let writes = 0;
    world.storage.onRequest = async (request) => {
      if (request.kind === 'blob-write' && request.phase === 'before' && request.name === 'chunk-index/aa') {
        const hook = world.storage.onRequest;
        world.storage.onRequest = undefined;
        writes += 1;
        const stored = await world.container.read('chunk-index/aa', 1e6);
        await world.container.write('chunk-index/aa', stored?.bytes ?? new Uint8Array(), {
          condition: { etag: stored?.etag ?? '' },
          contentType: 'application/zstd',
        });
        world.storage.onRequest = hook;
      }
    };
    await expect(world.index().flushRoot('aa', JOB)).rejects.toMatchObject({ code: 'pending-not-flushed' });
    expect(writes).toBe(CONDITIONAL_WRITE_RETRIES_MAX);
    expect((await world.pending.census()).rows).toBe(3);
  });

  it('invariant 9: a corrupt shard is another error than a root that does not come to rest, and gives the claim back', async () => {
    const world = await World.create();
    await world.container.write('chunk-index/aa', Buffer.from('no shard'), {
      condition: { absent: true },
      contentType: 'application/zstd',
    });
    await world.pending.record(entries(3, 'aa'));
    await expect(world.index().flushRoot('aa', JOB)).rejects.toMatchObject({ code: 'chunk-index-corrupt' });
    expect((await world.pending.census()).rows).toBe(3);
    expect(await world.pending.claimRoot('aa', 'the next', world.clock.now())).toBeDefined();
  });
});

describe('invariant 3: a shard is never overwritten or deleted unconditionally', () => {
  it('another writer between reading and writing loses nothing', async () => {
    const old = entries(3, 'aa');
    const world = await worldWith(old);
    const mine = entries(3, 'aa', 50);
    const theirs = entries(3, 'aa', 80);
    await world.pending.record(mine);
    let once = true;
    world.storage.onRequest = async (request) => {
      if (once && request.kind === 'blob-write' && request.phase === 'before') {
        once = false;
        const stored = await world.container.head('chunk-index/aa');
        await world.container.write(
          'chunk-index/aa',
          await world.codec.encode(Buffer.from(textOf([...old, ...theirs]))),
          { condition: { etag: stored?.etag ?? '' }, contentType: 'application/zstd' },
        );
      }
    };
    await world.index().flushRoot('aa', JOB);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...theirs, ...mine], 1024));
  });

  it('another writer between the uploads and the delete of the parent loses nothing', async () => {
    const old = entries(8, 'aa');
    const world = await worldWith(old, { maxShardEntryCount: 8 });
    const mine = entries(8, 'aa', 50);
    const theirs = entries(1, 'aa', 80);
    await world.pending.record(mine);
    let once = true;
    world.storage.onRequest = async (request) => {
      if (once && request.kind === 'blob-delete' && request.phase === 'before') {
        once = false;
        const stored = await world.container.head('chunk-index/aa');
        await world.container.write(
          'chunk-index/aa',
          await world.codec.encode(Buffer.from(textOf([...old, ...theirs]))),
          {
            condition: { etag: stored?.etag ?? '' },
            contentType: 'application/zstd',
          },
        );
      }
    };
    await world.index().flushRoot('aa', JOB);
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout([...old, ...theirs, ...mine], 8));
  });

  it('a shard that appears beside what was written is merged', async () => {
    const world = await worldWith(entries(8, 'aa'), { maxShardEntryCount: 8 });
    await world.pending.record(entries(8, 'aa', 50));
    const stray = entryOf(hash(33, 'aa3333'));
    let once = true;
    world.storage.onRequest = async (request) => {
      if (once && request.kind === 'blob-delete' && request.phase === 'after') {
        once = false;
        await writeShard(world, 'aa3333', [stray]);
      }
    };
    await world.index().flushRoot('aa', JOB);
    expect(describeLayout(await layoutOf(world))).toEqual(
      freshLayout([...entries(8, 'aa'), ...entries(8, 'aa', 50), stray], 8),
    );
  });
});

describe('whole runs and their requests', () => {
  it('SC-1, LS-10, LK-11: a new repository: no download, two uploads; after publication asking again is free', async () => {
    const world = await World.create();
    const list = [...entries(3, 'aa'), ...entries(3, 'bb')];
    const index = world.index();
    await index.lookup(hashesOf(list));
    await world.pending.record(list);
    world.watch();
    await world.complete(index);
    // One listing for the roots; for each root one to merge by, one to check, one to settle.
    expect(world.shardRequests()).toEqual({ lists: 1 + 2 * 3, reads: 0, writes: 2, deletes: 0 });
    world.watch();
    expect((await index.lookup(hashesOf(list))).size).toBe(6);
    expect(world.requests).toEqual(['row-query pending/photos_00']);
  });

  it('SC-2: the same instance, second run: no download, one upload of the merged content', async () => {
    const world = await World.create();
    const index = world.index();
    await world.pending.record(entries(3, 'aa'));
    await world.complete(index);
    await world.pending.record(entries(3, 'aa', 50));
    world.watch();
    await world.complete(index);
    expect(world.shardRequests()).toMatchObject({ reads: 0, writes: 1, deletes: 0 });
    expect(describeLayout(await layoutOf(world))).toEqual(
      freshLayout([...entries(3, 'aa'), ...entries(3, 'aa', 50)], 1024),
    );
  });

  it('SC-3a: another instance with nothing cached: one download per touched prefix, no upload', async () => {
    const list = [...entries(3, 'aa'), ...entries(3, 'bb')];
    const world = await worldWith([...list, ...entries(3, 'cc')]);
    world.watch();
    expect((await world.index().lookup(hashesOf(list))).size).toBe(6);
    expect(world.shardRequests()).toEqual({ lists: 2, reads: 2, writes: 0, deletes: 0 });
  });

  it('SC-3b: another instance with an old ETag: that shard is read again, and no other', async () => {
    const world = await worldWith([...entries(3, 'aa'), ...entries(3, 'bb')]);
    const stale = world.index();
    await stale.lookup(hashesOf([...entries(3, 'aa'), ...entries(3, 'bb')]));
    const added = entries(3, 'aa', 50);
    await world.pending.record(added);
    await world.complete(world.index());
    world.watch();
    const all = [...entries(3, 'aa'), ...entries(3, 'bb'), ...added];
    expect((await stale.lookup(hashesOf(all))).size).toBe(9);
    expect(world.shardRequests()).toEqual({ lists: 2, reads: 1, writes: 0, deletes: 0 });
  });

  it('SC-5: a flush that fails: pending entries survive, and a retry uploads them', async () => {
    const world = await World.create();
    const list = entries(3, 'aa');
    await world.pending.record(list);
    world.storage.onRequest = (request) => {
      if (request.kind === 'blob-write') throw new Error('no network');
    };
    await expect(world.index().flushRoot('aa', JOB)).rejects.toThrow('no network');
    world.storage.onRequest = undefined;
    expect((await world.pending.census()).rows).toBe(3);
    await expectAllFound(world, list);
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(list, 1024));
  });

  it('SC-6: a run without changes on a warm instance: no download, no upload, the version read once', async () => {
    const world = await World.create();
    const index = world.index();
    const list = entries(3, 'aa');
    await world.pending.record(list);
    await world.complete(index);
    world.watch();
    await index.lookup(hashesOf(list));
    expect(world.shardRequests()).toEqual({ lists: 0, reads: 0, writes: 0, deletes: 0 });
    expect(world.versionReads).toBe(1);
  });
});
