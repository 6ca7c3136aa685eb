import { describe, expect, it } from 'vitest';
import { parseChunkHash } from '../../src/hashing/hashes.ts';
import { PendingEntries } from '../../src/pending/pending-entries.ts';
import type { AccessTier } from '../../src/storage/ports.ts';
import { entries, entryOf, hash, hashesOf, World } from '../chunk-index/world.ts';

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
}

describe('recording', () => {
  it('LS-02: a pending entry is stored and read back unchanged, and its root counts as having pending work', async () => {
    const world = await World.create();
    const member = entryOf(hash(1, 'ab'), {
      chunkHash: parseChunkHash(hash(2)),
      originalSize: 0,
      chunkSize: Number.MAX_SAFE_INTEGER,
    });
    await world.pending.record([member]);
    expect((await world.pending.page('ab')).rows.map((row) => row.entry)).toEqual([member]);
    expect(await world.pending.getMany([member.contentHash])).toEqual(new Map([[member.contentHash, member]]));
    expect(await world.pending.roots()).toEqual(['ab']);
  });

  it('LS-03: the tier hint of every tier survives', async () => {
    const world = await World.create();
    const tiers: AccessTier[] = ['hot', 'cool', 'cold', 'archive'];
    await world.pending.record(tiers.map((tier, n) => entryOf(hash(n), { tier })));
    const found = await world.pending.getMany(tiers.map((_, n) => hash(n)));
    expect(tiers.map((_, n) => found.get(hash(n))?.tier)).toEqual(tiers);
  });

  it('LS-04: of two writes of one hash the later is read, also within one call', async () => {
    const world = await World.create();
    const [first, second, third] = [1, 2, 3].map((chunkSize) => entryOf(hash(1), { chunkSize }));
    if (first === undefined || second === undefined || third === undefined) throw new Error('three entries');
    await world.pending.record([first, second]);
    expect((await world.pending.getMany([hash(1)])).get(hash(1))).toEqual(second);
    await world.pending.record([third]);
    expect((await world.pending.getMany([hash(1)])).get(hash(1))).toEqual(third);
    expect((await world.pending.census()).rows).toBe(1);
  });

  it('takes batches of a hundred of one root', async () => {
    const world = await World.create();
    world.watch();
    await world.pending.record([...entries(250, 'aa'), ...entries(10, 'bb')]);
    expect(world.requests.sort()).toEqual([
      'row-batch pending/photos_aa',
      'row-batch pending/photos_aa',
      'row-batch pending/photos_aa',
      'row-batch pending/photos_bb',
    ]);
  });

  it('LS-13, LS-14: a row that cannot be understood is an error that names it and says what to do, never left out', async () => {
    for (const damage of [
      { schemaVersion: 2 },
      { tier: 'lukewarm' },
      { originalSize: -1n },
      { chunkSize: 12 },
      { chunkHash: 'short' },
    ]) {
      const world = await World.create();
      await world.pending.record(entries(3, 'aa'));
      const [row] = (await world.table.queryPage({ partition: 'photos_aa' })).rows;
      await world.table.upsert('photos_aa', row?.rowKey ?? '', { ...row?.values, ...damage });
      for (const reading of [
        world.pending.firstPage(),
        world.pending.page('aa'),
        world.pending.getMany(hashesOf(entries(3, 'aa'))),
        world.index().lookup([hash(1)]),
        world.index().flushRoot('aa', { jobId: 'job', owner: 'test' }),
      ]) {
        const error = await errorOf(reading);
        expect(error).toMatchObject({ code: 'pending-not-flushed' });
        expect(String(error)).toContain(row?.rowKey);
      }
    }
  });
});

describe('reading', () => {
  it('LS-18: roots and entries are asked by root, in hash order, a page at a time', async () => {
    const world = await World.create();
    const many = entries(2_300, 'aa');
    await world.pending.record([...many, ...entries(5, 'ab')]);
    const read: string[] = [];
    let after: (typeof many)[number]['contentHash'] | undefined;
    let pages = 0;
    do {
      const page = await world.pending.page('aa', after);
      read.push(...page.rows.map((row) => row.entry.contentHash));
      after = page.next;
      pages += 1;
    } while (after !== undefined);
    expect(read).toEqual(hashesOf(many));
    expect(pages).toBe(3);
    expect((await world.pending.page('ab')).rows).toHaveLength(5);
    expect((await world.pending.page('ac')).rows).toEqual([]);
  });

  it('finds the roots with one query when all rows fit a page, and one for each root when they do not', async () => {
    const world = await World.create();
    await world.pending.record([...entries(3, 'ff'), ...entries(3, '00')]);
    world.watch();
    expect(await world.pending.roots()).toEqual(['00', 'ff']);
    expect(world.requests).toHaveLength(1);
    await world.pending.record(entries(1_200, '7a'));
    world.watch();
    expect(await world.pending.roots()).toEqual(['00', '7a', 'ff']);
    expect(world.requests).toHaveLength(1 + 256);
  });

  it('a claim is no entry', async () => {
    const world = await World.create();
    await world.pending.claimRoot('aa', 'somebody', world.clock.now());
    expect(await world.pending.roots()).toEqual([]);
    expect(await world.pending.firstPage()).toEqual({ entries: new Map(), complete: true });
    expect((await world.pending.page('aa')).rows).toEqual([]);
    expect(await world.pending.census()).toEqual({ rows: 0, oldest: undefined });
    await world.pending.record(entries(1_200, 'bb'));
    expect(await world.pending.roots()).toEqual(['bb']);
  });

  it('the first page says whether it is all', async () => {
    const world = await World.create();
    await world.pending.record(entries(1_000));
    expect(await world.pending.firstPage()).toMatchObject({ complete: true });
    await world.pending.record(entries(1, '', 5_000));
    const { entries: first, complete } = await world.pending.firstPage();
    expect([first.size, complete]).toEqual([1_000, false]);
  });

  it('keeps repositories apart, also one whose name looks like a root of another', async () => {
    const world = await World.create();
    const of = (repository: string): PendingEntries =>
      new PendingEntries({ table: world.table, repository, clock: world.clock });
    await of('a').record(entries(2, '01'));
    for (const other of ['a-00', 'a-01', 'a-0', 'aa', 'b', 'a0']) {
      await of(other).record(entries(3, '01', 10));
    }
    expect((await of('a').firstPage()).entries.size).toBe(2);
    expect((await of('a').census()).rows).toBe(2);
    expect(await of('a').roots()).toEqual(['01']);
  });

  it('counts the rows and knows the age of the oldest', async () => {
    const world = await World.create();
    const first = world.clock.now();
    await world.pending.record(entries(1_100));
    world.clock.advance(60_000);
    await world.pending.record(entries(400, '', 5_000));
    expect(await world.pending.census()).toEqual({ rows: 1_500, oldest: first });
  });
});

describe('removing', () => {
  it('removes rows in batches of a hundred', async () => {
    const world = await World.create();
    await world.pending.record(entries(250, 'aa'));
    const { rows } = await world.pending.page('aa');
    world.watch();
    const keys = rows.map((row) => ({ contentHash: row.entry.contentHash, etag: row.etag }));
    expect(await world.pending.remove('aa', keys)).toEqual({ removed: 250, changed: 0 });
    expect(world.count('row-batch')).toBe(3);
    expect((await world.pending.census()).rows).toBe(0);
  });

  it('invariant 2: leaves a row that was recorded again, and takes the others of its batch', async () => {
    const world = await World.create();
    const list = entries(150, 'aa');
    await world.pending.record(list);
    const { rows } = await world.pending.page('aa');
    const keys = rows.map((row) => ({ contentHash: row.entry.contentHash, etag: row.etag }));
    await world.pending.record(list.slice(10, 12));
    await world.pending.remove('aa', keys.slice(20, 25));
    expect(await world.pending.remove('aa', keys)).toEqual({ removed: 143, changed: 2 });
    expect((await world.pending.page('aa')).rows.map((row) => row.entry)).toEqual(list.slice(10, 12));
  });

  it('of nothing asks nothing', async () => {
    const world = await World.create();
    world.watch();
    expect(await world.pending.remove('aa', [])).toEqual({ removed: 0, changed: 0 });
    expect(world.requests).toEqual([]);
  });
});
