import { describe, expect, it } from 'vitest';
import type { ChunkIndex } from '../../src/chunk-index/chunk-index.ts';
import { AriusError } from '../../src/errors.ts';
import { LOOKUP_RELIST_MAX } from '../../src/limits.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import type { RequestHook } from '../../src/storage/memory/gate.ts';
import { entries, entryOf, hash, hashesOf, World, type WorldOptions } from './world.ts';

/** A repository whose given entries were flushed and published by another instance. */
async function published(list: readonly ShardEntry[], options: WorldOptions = {}): Promise<World> {
  const world = await World.create(options);
  await world.pending.record(list);
  await world.complete(world.index());
  world.watch();
  return world;
}

async function foundIn(index: ChunkIndex, list: readonly ShardEntry[]): Promise<ShardEntry[]> {
  const found = await index.lookup(hashesOf(list));
  return list.flatMap((entry) => found.get(entry.contentHash) ?? []);
}

async function errorOf(promise: Promise<unknown>): Promise<AriusError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AriusError);
  return error as AriusError;
}

/** Calls back once, just before the first request that is described so. */
function justBefore(world: World, description: string, act: () => Promise<void>): void {
  const counting = world.storage.onRequest;
  let done = false;
  world.storage.onRequest = async (request) => {
    if (!done && request.phase === 'before' && `${request.kind} ${request.container}/${request.name}` === description) {
      done = true;
      world.storage.onRequest = counting;
      await act();
      world.storage.onRequest = counting;
    }
    await counting?.(request);
  };
}

async function writeShard(world: World, prefix: string, text: string): Promise<void> {
  const body = await world.codec.encode(Buffer.from(text));
  const name = `chunk-index/${prefix}`;
  const existing = await world.container.head(name);
  const condition = existing === undefined ? ({ absent: true } as const) : { etag: existing.etag };
  await world.container.write(name, body, { condition, contentType: 'application/zstd' });
}

async function deleteShard(world: World, prefix: string): Promise<void> {
  const name = `chunk-index/${prefix}`;
  await world.container.delete(name, { etag: (await world.container.head(name))?.etag ?? '' });
}

describe('what a lookup finds', () => {
  it('LK-01: no shard at all: a miss, one listing, no download', async () => {
    const world = await published([]);
    expect(await world.index().lookup([hash(1)])).toEqual(new Map());
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 0, writes: 0, deletes: 0 });
  });

  it('LK-04, LK-08: a shard is downloaded once, and not again at the same version', async () => {
    const list = entries(5, 'aa');
    const world = await published(list);
    const index = world.index();
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 1, writes: 0, deletes: 0 });
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 1, writes: 0, deletes: 0 });
  });

  it('LK-05: a valid shard without the hash: a plain miss, which writes nothing', async () => {
    const world = await published(entries(5, 'aa'));
    expect(await world.index().lookup([hash(100, 'aa')])).toEqual(new Map());
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 1, writes: 0, deletes: 0 });
  });

  it('LK-06: a pending entry is answered without any request for shards; misses are left out', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const pending = entryOf(hash(100, 'aa'));
    await world.pending.record([pending]);
    const index = world.index();
    world.watch();
    expect(await foundIn(index, [pending])).toEqual([pending]);
    expect(world.requests).toEqual(['row-query pending/photos_00']);
    expect(world.versionReads).toBe(0);
    const found = await index.lookup([...hashesOf(list), pending.contentHash, hash(200, 'aa')]);
    expect(found.size).toBe(4);
  });

  it('LK-07, LK-12: twelve prefixes, several hashes each: every shard is loaded once, with one listing of everything', async () => {
    const list = Array.from({ length: 12 }, (_, n) => entries(3, n.toString(16).padStart(2, '0'))).flat();
    const world = await published(list);
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 12, writes: 0, deletes: 0 });
    expect(new Set(world.requests.filter((request) => request.startsWith('blob-read'))).size).toBe(12);
  });

  it('lists fewer than eight roots one by one', async () => {
    const list = ['10', '20', '30'].flatMap((root) => entries(2, root));
    const world = await published(list);
    await foundIn(world.index(), list);
    expect(world.requests.filter((request) => request.startsWith('blob-list')).sort()).toEqual([
      'blob-list photos/chunk-index/10',
      'blob-list photos/chunk-index/20',
      'blob-list photos/chunk-index/30',
    ]);
  });

  it('LK-20: in a split root the leaf is used, and the repeat is free', async () => {
    const list = entries(40, 'aa');
    const world = await published(list, { maxShardEntryCount: 8 });
    const index = world.index();
    const one = list.slice(7, 8);
    expect(await foundIn(index, one)).toEqual(one);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 1 });
    world.watch();
    expect(await foundIn(index, one)).toEqual(one);
    expect(world.shardRequests()).toMatchObject({ lists: 0, reads: 0 });
  });

  it('LK-21: an empty child range of a split root: a miss with one listing and no download; the repeat is free', async () => {
    const list = [...entries(5, 'aa1'), ...entries(5, 'aa2')];
    const world = await published(list, { maxShardEntryCount: 8 });
    const index = world.index();
    for (const lists of [1, 1]) {
      expect(await index.lookup([hash(7, 'aa9')])).toEqual(new Map());
      expect(world.shardRequests()).toEqual({ lists, reads: 0, writes: 0, deletes: 0 });
    }
  });

  it('LS-05: a pending entry wins over the shard, and reading the shard leaves it alone', async () => {
    const [old, ...others] = entries(3, 'aa');
    if (old === undefined) throw new Error('an entry');
    const world = await published([old, ...others]);
    const newer = entryOf(old.contentHash, { tier: 'archive' });
    await world.pending.record([newer]);
    const index = world.index();
    expect(await foundIn(index, others)).toEqual(others);
    expect(await foundIn(index, [newer])).toEqual([newer]);
    expect((await world.pending.page('aa')).rows.map((row) => row.entry)).toEqual([newer]);
  });

  it('reads pending entries by key when they fill more than a page', async () => {
    const world = await published(entries(2, 'aa'));
    const many = entries(1_100);
    await world.pending.record(many);
    world.watch();
    const asked = many.slice(500, 510);
    expect(await foundIn(world.index(), asked)).toEqual(asked);
    expect(world.count('row-query')).toBe(1);
    expect(world.count('row-read')).toBe(10);
  });

  it('asks nothing for no hashes but the pen', async () => {
    const world = await published(entries(2, 'aa'));
    expect(await world.index().lookup([])).toEqual(new Map());
    expect(world.requests).toEqual(['row-query pending/photos_00']);
  });
});

describe('an interrupted split is one union', () => {
  it('LK-19: beside a parent, a deeper shard is read only for what the parent does not hold', async () => {
    const inParent = entries(4, 'aa3');
    const world = await published(inParent);
    const onlyDeeper = entryOf(hash(50, 'aa3'));
    const changed = entryOf(inParent[0]?.contentHash ?? hash(0), { tier: 'hot' });
    await writeShard(world, 'aa3', shardText([onlyDeeper, changed]));
    world.watch();
    const index = world.index();
    expect(await foundIn(index, inParent)).toEqual(inParent);
    expect(world.count('blob-read', 'photos/chunk-index/aa')).toBe(1);
    expect(await foundIn(index, [onlyDeeper])).toEqual([onlyDeeper]);
    expect(world.count('blob-read', 'photos/chunk-index/aa3')).toBe(1);
    world.watch();
    expect(await foundIn(index, [...inParent, onlyDeeper])).toEqual([...inParent, onlyDeeper]);
    expect(world.shardRequests()).toMatchObject({ lists: 0, reads: 0 });
  });
});

describe('corrupt shards', () => {
  it.each([
    ['no body of the format', (_: Uint8Array) => Buffer.from('not zstd at all')],
    ['cut short', (body: Uint8Array) => body.subarray(0, body.length - 1)],
    ['bytes behind the end', (body: Uint8Array) => Buffer.concat([body, Buffer.from([0])])],
  ])('LK-02, invariant 11: %s: an error that names the blob and the repair', async (_, damage) => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const stored = await world.container.read('chunk-index/aa', 1_000_000);
    if (stored === undefined) throw new Error('a shard');
    const options = { condition: { etag: stored.etag }, contentType: 'application/zstd' };
    await world.container.write('chunk-index/aa', damage(stored.bytes), options);
    const error = await errorOf(world.index().lookup(hashesOf(list)));
    expect(error.code).toBe('chunk-index-corrupt');
    expect(error.message).toContain('chunk-index/aa');
    expect(error.next).toMatch(/[Rr]epair/);
  });

  it.each([
    ['a line that is none', 'hello\n'],
    ['a hash of another prefix', shardText(entries(1, 'ab'))],
  ])('LK-02: %s is corruption, not a miss', async (_, text) => {
    const world = await published(entries(3, 'aa'));
    await writeShard(world, 'aa', text);
    expect((await errorOf(world.index().lookup([hash(1, 'aa')]))).code).toBe('chunk-index-corrupt');
  });

  it('a body larger than any shard may be is refused before it is read', async () => {
    const world = await published(entries(3, 'aa'));
    const { etag } = (await world.container.head('chunk-index/aa')) ?? { etag: '' };
    const body = new Uint8Array(64 * 1024 * 1024 + 1);
    await world.container.write('chunk-index/aa', body, { condition: { etag }, contentType: 'application/zstd' });
    expect((await errorOf(world.index().lookup([hash(1, 'aa')]))).code).toBe('chunk-index-corrupt');
  });

  it('another passphrase: the same error, since a damaged header looks the same', async () => {
    const list = entries(3, 'aa');
    const world = await published(list, { passphrase: 'one' });
    expect(await foundIn(world.index(), list)).toEqual(list);
    const other = await World.create({ passphrase: 'another' });
    const stored = await world.container.read('chunk-index/aa', 1_000_000);
    const options = { condition: { absent: true } as const, contentType: 'application/zstd' };
    await other.container.write('chunk-index/aa', stored?.bytes ?? new Uint8Array(), options);
    expect((await errorOf(other.index().lookup(hashesOf(list)))).code).toBe('chunk-index-corrupt');
  });

  it('blobs that no client takes for shards are passed over', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    for (const name of ['chunk-index/a', 'chunk-index/aa-note', 'chunk-index/AA3']) {
      await world.container.write(name, Buffer.from('x'), { condition: { absent: true }, contentType: 'text/plain' });
    }
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(await world.index().rootsToFlush()).toEqual([]);
  });
});

describe('versions and claims', () => {
  it('LS-06, LS-08, LK-10, SC-4: a newer snapshot, unchanged shards: one listing, no download, then nothing', async () => {
    const list = entries(5, 'aa');
    const world = await published(list);
    const index = world.index();
    await foundIn(index, list);
    world.version = { ...world.version, epoch: 'a snapshot of another client' };
    world.watch();
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests()).toEqual({ lists: 1, reads: 0, writes: 0, deletes: 0 });
    world.watch();
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests()).toEqual({ lists: 0, reads: 0, writes: 0, deletes: 0 });
  });

  it('LS-07: a prefix known to be empty answers without a request; a pending entry in it still wins', async () => {
    const world = await published([]);
    const index = world.index();
    const wanted = entryOf(hash(1, 'aa'));
    await index.lookup([wanted.contentHash]);
    world.watch();
    expect(await index.lookup([wanted.contentHash])).toEqual(new Map());
    expect(world.shardRequests()).toMatchObject({ lists: 0, reads: 0 });
    await world.pending.record([wanted]);
    expect(await foundIn(index, [wanted])).toEqual([wanted]);
  });

  it('LK-09: a cached shard that is gone at a newer version: a miss, and the repeat is free', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const index = world.index();
    await foundIn(index, list);
    await deleteShard(world, 'aa');
    world.version = { ...world.version, layoutVersion: 99 };
    world.watch();
    expect(await foundIn(index, list)).toEqual([]);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 0 });
    expect(await foundIn(index, list)).toEqual([]);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 0 });
  });

  it('LS-11, LC-06: after invalidation the next lookup lists and reads again; pending entries stay', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const pending = entryOf(hash(100, 'aa'));
    await world.pending.record([pending]);
    const index = world.index();
    await foundIn(index, list);
    index.invalidateCaches();
    world.watch();
    expect(await foundIn(index, [...list, pending])).toEqual([...list, pending]);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 1 });
  });

  it('a lookup that was under way when caches were dropped leaves nothing behind', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const index = world.index();
    justBefore(world, 'blob-read photos/chunk-index/aa', async () => index.invalidateCaches());
    await foundIn(index, list);
    world.watch();
    await foundIn(index, list);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 1 });
  });

  it('pending entries are read before the version: an entry that settles in between is found', async () => {
    const world = await published(entries(3, 'aa'));
    const wanted = entryOf(hash(100, 'aa'));
    await world.pending.record([wanted]);
    const index = world.index();
    await index.lookup([hash(200, 'aa')]); // claims on the shard as it is, without the entry
    const other = world.index();
    let settled = false;
    world.storage.onRequest = async (request) => {
      // The row is still there when the pen is read; everything that settles it happens before the answer arrives.
      if (request.kind === 'row-query' && request.phase === 'before' && !settled) {
        settled = true;
        world.storage.onRequest = undefined;
        await world.complete(other);
      }
    };
    expect(await foundIn(index, [wanted])).toEqual([wanted]);
    expect(settled).toBe(true);
  });

  it('a claim carries the version read before its listing: a bump in between makes it worthless', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const index = world.index();
    justBefore(world, 'blob-list photos/chunk-index/aa', async () => {
      world.version = { ...world.version, layoutVersion: 77 };
    });
    expect(await foundIn(index, list)).toEqual(list);
    world.watch();
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 0 });
  });

  it('evicted shards are read again, without a listing', async () => {
    const list = [...entries(5, 'aa'), ...entries(5, 'ab')];
    const world = await published(list, { cachedEntriesMax: 5 });
    const index = world.index();
    await foundIn(index, list);
    world.watch();
    expect(await foundIn(index, list)).toEqual(list);
    expect(world.shardRequests().lists).toBe(0);
    expect(world.shardRequests().reads).toBeGreaterThan(0);
  });
});

describe('the listing', () => {
  it('LC-01: an untouched root is resolved without a further listing', async () => {
    const roots = Array.from({ length: 9 }, (_, n) => `a${n.toString(16)}`);
    const list = roots.flatMap((root) => entries(2, root));
    const world = await published(list);
    const index = world.index();
    await foundIn(index, list.slice(0, 16)); // eight roots: everything is listed
    world.watch();
    expect(await foundIn(index, list.slice(16))).toEqual(list.slice(16));
    expect(world.shardRequests()).toMatchObject({ lists: 0, reads: 1 });
  });

  it('LC-02: an empty repository, three roots: one listing each, and eight roots: one for all; no download', async () => {
    const world = await published([]);
    await world.index().lookup(['10', '20', '30'].map((root) => hash(1, root)));
    expect(world.shardRequests()).toMatchObject({ lists: 3, reads: 0 });
    world.watch();
    await world.index().lookup(['10', '20', '30', '40', '50', '60', '70', '80'].map((root) => hash(1, root)));
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 0 });
  });

  it('LC-03: a shard without a snapshot is found: what exists is what counts', async () => {
    const list = entries(3, 'aa');
    const world = await World.create();
    await writeShard(world, 'aa', shardText(list));
    expect(world.version.epoch).toBeNull();
    expect(await foundIn(world.index(), list)).toEqual(list);
  });

  it('LC-04: sixteen leaves of one root: each downloaded once, one listing', async () => {
    const list = entries(64, 'aa');
    const world = await published(list, { maxShardEntryCount: 20 });
    expect(await world.shardNames()).toHaveLength(16);
    world.watch();
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 16 });
  });

  it('LC-05: eight leaves of one root are downloaded at the same time', async () => {
    const list = Array.from({ length: 8 }, (_, n) => entries(3, `aa${n}`)).flat();
    const world = await published(list, { maxShardEntryCount: 4 });
    let waiting = 0;
    let release: () => void = () => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    world.storage.onRequest = async (request) => {
      if (request.kind === 'blob-read' && request.phase === 'before') {
        waiting += 1;
        if (waiting === 8) release();
        await all;
      }
    };
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(waiting).toBe(8);
  });

  it('LC-07: a listed shard that vanishes: one more listing, then an empty range', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    justBefore(world, 'blob-read photos/chunk-index/aa', () => deleteShard(world, 'aa'));
    const index = world.index();
    expect(await foundIn(index, list)).toEqual([]);
    expect(world.count('blob-list')).toBe(2);
    world.watch();
    expect(await foundIn(index, list)).toEqual([]);
    expect(world.shardRequests()).toMatchObject({ lists: 0, reads: 0 });
  });

  it('LC-08: a split that races the download is resolved through the children', async () => {
    const list = entries(6, 'aa');
    const more = entries(20, 'aa', 100);
    const world = await published(list, { maxShardEntryCount: 8 });
    await world.pending.record(more);
    const flusher = world.index();
    justBefore(world, 'blob-read photos/chunk-index/aa', async () => {
      world.storage.onRequest = undefined;
      await flusher.flushRoot('aa', { jobId: 'race', owner: 'test' });
    });
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(world.count('blob-list')).toBe(2);
    expect(await world.shardNames()).not.toContain('aa');
  });

  it('LC-09: a listing that failed is not kept', async () => {
    const list = entries(3, 'aa');
    const world = await published(list);
    const index = world.index();
    let failures = 0;
    world.storage.onRequest = (request) => {
      if (request.kind === 'blob-list' && failures === 0) {
        failures += 1;
        throw new Error('the network is down');
      }
    };
    await expect(index.lookup(hashesOf(list))).rejects.toThrow('the network is down');
    expect(await foundIn(index, list)).toEqual(list);
  });

  it('is shared by concurrent requests, and so is each download', async () => {
    const list = entries(4, 'aa');
    const world = await published(list);
    const index = world.index();
    const answers = await Promise.all(Array.from({ length: 10 }, () => foundIn(index, list)));
    expect(answers).toEqual(Array(10).fill(list));
    expect(world.shardRequests()).toMatchObject({ lists: 1, reads: 1 });
  });

  it('a miss is not trusted when a shard changed since the listing', async () => {
    const [first, ...rest] = entries(4, 'aa');
    if (first === undefined) throw new Error('an entry');
    const world = await published(rest);
    // Another client's split and merge: the entry moves into a shard that the listing knew with another content.
    justBefore(world, 'blob-read photos/chunk-index/aa', async () => {
      await writeShard(world, 'aa3', shardText([entryOf(hash(9, 'aa3'))]));
      await writeShard(world, 'aa', shardText(rest.slice(1)));
    });
    const index = world.index();
    expect(await foundIn(index, [entryOf(hash(9, 'aa3'))])).toEqual([entryOf(hash(9, 'aa3'))]);
    expect(world.count('blob-list')).toBe(2);
  });

  it('an index that never stands still is busy, never a miss', async () => {
    const list = entries(4, 'aa');
    const world = await published(list);
    let listings = 0;
    // Before and after each listing: what was downloaded is never what is listed next.
    const rewriteAroundListing: RequestHook = async (request) => {
      if (request.kind === 'blob-list') {
        listings += request.phase === 'before' ? 1 : 0;
        world.storage.onRequest = undefined;
        await writeShard(world, 'aa', shardText(list));
        world.storage.onRequest = rewriteAroundListing;
      }
    };
    world.storage.onRequest = rewriteAroundListing;
    const error = await errorOf(world.index().lookup([hash(77, 'aa')]));
    expect(error.code).toBe('busy');
    expect(error.retryAfterSeconds).toBeGreaterThan(0);
    expect(listings).toBe(LOOKUP_RELIST_MAX + 1);
  });

  it('a hit is a fact also in a shard that changed', async () => {
    const list = entries(4, 'aa');
    const world = await published(list);
    justBefore(world, 'blob-read photos/chunk-index/aa', () => writeShard(world, 'aa', shardText(list)));
    expect(await foundIn(world.index(), list)).toEqual(list);
    expect(world.count('blob-list')).toBe(1);
  });
});

function shardText(list: readonly ShardEntry[]): string {
  return [...list]
    .sort((left, right) => (left.contentHash < right.contentHash ? -1 : 1))
    .map(
      (entry) =>
        `${entry.contentHash} ${entry.originalSize} ${entry.chunkSize} ${{ hot: 1, cool: 2, cold: 3, archive: 4 }[entry.tier]}\n`,
    )
    .join('');
}
