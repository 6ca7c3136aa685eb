/**
 * Several actors on one root at once, every interleaving a seed can give: flushes of the same and of different jobs,
 * settles, recording and lookups, actors that are killed, and time that passes while an actor stands still. After every
 * change both readers must find what they are promised.
 */

import { describe, expect, it } from 'vitest';
import type { ChunkIndex } from '../../src/chunk-index/chunk-index.ts';
import { AriusError } from '../../src/errors.ts';
import { FLUSH_ROUNDS_MAX, ROOT_CLAIM_DURATION_MS, ROOT_CLAIM_MARGIN_MS } from '../../src/limits.ts';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import { describeLayout, freshLayout, layoutOf, parentWins, textOf, union } from './readers.ts';
import { Scheduler } from './scheduler.ts';
import { entries, entryOf, hash, hashesOf, World } from './world.ts';

const ROOT = 'aa';
const SEEDS = Number(process.env.TWIN_SEEDS ?? 150);

/** What has been promised so far. */
class Promises {
  readonly recorded = new Map<string, ShardEntry>();
  readonly published = new Map<string, ShardEntry>();

  record(list: readonly ShardEntry[]): void {
    for (const entry of list) this.recorded.set(entry.contentHash, entry);
  }

  publish(list: Iterable<ShardEntry>): void {
    for (const entry of list) this.published.set(entry.contentHash, entry);
  }
}

async function check(world: World, promises: Promises): Promise<void> {
  const layout = await layoutOf(world);
  for (const { contentHash } of promises.published.values()) {
    if (parentWins(layout, contentHash) === undefined) {
      throw new Error(`${contentHash} was published and a reader that knows only parents does not find it`);
    }
  }
  const missing = [...promises.recorded.values()].filter((entry) => union(layout, entry.contentHash) === undefined);
  if (missing.length > 0) {
    const hook = world.storage.onRequest;
    world.storage.onRequest = undefined;
    const pending = await world.pending.getMany(hashesOf(missing));
    world.storage.onRequest = hook;
    const lost = missing.filter((entry) => !pending.has(entry.contentHash));
    if (lost.length > 0) {
      throw new Error(`${lost[0]?.contentHash} was recorded and is neither pending nor in a shard`);
    }
  }
}

/** A run's completion: what was recorded when it began is published at its end. */
async function complete(world: World, index: ChunkIndex, jobId: string, promises: Promises): Promise<void> {
  const job = { jobId, owner: jobId };
  const promised = [...promises.recorded.values()];
  for (let round = 0; round < FLUSH_ROUNDS_MAX; round += 1) {
    await index.flushRoot(ROOT, job);
    world.version = { ...world.version, layoutVersion: world.version.layoutVersion + 1 };
    const { flushAgain } = await index.settleRoot(ROOT, job);
    if (!flushAgain) {
      promises.publish(promised);
      return;
    }
  }
}

/** Answers that the contract allows when others are in the way; anything else is a failure. */
async function tolerant(promise: Promise<unknown>): Promise<void> {
  await promise.catch((error: unknown) => {
    if (!(error instanceof AriusError && (error.code === 'pending-not-flushed' || error.code === 'busy'))) {
      throw error;
    }
  });
}

async function record(world: World, promises: Promises, list: readonly ShardEntry[]): Promise<void> {
  await world.pending.record(list);
  promises.record(list);
}

async function lookUpAll(index: ChunkIndex, promises: Promises): Promise<void> {
  const known = [...promises.recorded.values()];
  const found = await index.lookup(hashesOf(known));
  const missed = known.filter((entry) => !found.has(entry.contentHash));
  if (missed.length > 0) {
    throw new Error(`A lookup missed ${missed[0]?.contentHash}, which was recorded before it began`);
  }
}

async function playSeed(seed: number, scheduler = new Scheduler(seed)): Promise<void> {
  const max = 1 + Math.floor(scheduler.random() * 5);
  const world: World = await World.create({
    maxShardEntryCount: max,
    bareBodies: true,
    sleep: (ms) => scheduler.sleeping(world.clock)(ms),
  });
  const promises = new Promises();
  const some = (count: number, from: number): ShardEntry[] =>
    Array.from({ length: count }, (_, n) =>
      entryOf(hash(from + n, scheduler.pick(['aa', 'aa1', 'aa11', 'aa7']) ?? ROOT)),
    );

  const published = scheduler.random() < 0.4 ? [] : some(Math.floor(scheduler.random() * 7), 0);
  await record(world, promises, published);
  await complete(world, world.index(), 'earlier', promises);
  const [parent] = await world.shardNames();
  if (parent !== undefined && scheduler.random() < 0.3) {
    // What another client's interrupted split leaves: a deeper shard beside its parent.
    const stale = entryOf(hash(900, `${parent}1`));
    const options = { condition: { absent: true } as const, contentType: 'application/zstd' };
    await world.container.write(`chunk-index/${parent}1`, Buffer.from(textOf([stale])), options);
  }
  await record(world, promises, some(8, 100));

  const warm = world.index();
  await warm.lookup([hash(1, 'aa')]);
  world.storage.onRequest = scheduler.hook;
  const actors = [
    scheduler.act('one', () => tolerant(complete(world, world.index(), 'job', promises))),
    scheduler.act('twin', () => tolerant(complete(world, world.index(), 'job', promises))),
    scheduler.act('other', () => tolerant(complete(world, world.index(), 'another job', promises))),
    scheduler.act('agent', async () => {
      await record(world, promises, some(4, 200));
      await tolerant(lookUpAll(warm, promises));
      await record(world, promises, some(4, 300));
      await tolerant(lookUpAll(warm, promises));
      await tolerant(lookUpAll(world.index(), promises));
    }),
  ];
  await scheduler.run(async ({ what }) => {
    if (/^(blob-write|blob-delete|row-batch|row-delete)/.test(what)) {
      await check(world, promises);
    }
    if (scheduler.random() < 0.01) {
      world.clock.advance(scheduler.random() * 2 * (ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS));
    }
    const someone = scheduler.pick(scheduler.waitingActors);
    const fate = scheduler.random();
    if (someone !== undefined && fate < 0.004) {
      scheduler.kill(someone);
    } else if (someone !== undefined && fate < 0.02) {
      scheduler.freeze(someone, Math.floor(scheduler.random() * 150));
    }
  });
  await Promise.all(actors);
  world.storage.onRequest = undefined;

  world.clock.advance(ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS);
  await completeQuietly(world, scheduler, promises);
  await check(world, promises);
  expect((await world.pending.census()).rows).toBe(0);
  const layout = await layoutOf(world);
  const all = [...layout.values()].flatMap((shard) => [...shard.values()]);
  expect(describeLayout(layout)).toEqual(freshLayout(all, max));
  const lost = [...promises.recorded.values()].filter((entry) => union(layout, entry.contentHash) === undefined);
  expect(lost).toEqual([]);
}

/** After everybody is gone. */
async function completeQuietly(world: World, scheduler: Scheduler, promises: Promises): Promise<void> {
  const finished = scheduler.act('last', () => complete(world, world.index(), 'last', promises));
  await scheduler.run(async () => undefined);
  expect(await finished).toBeUndefined();
}

describe('many actors on one root', () => {
  it('invariants 2, 3, 4 and 5: nobody loses, hides or forgets an entry, and all ends in one layout', async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      await playSeed(seed).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      });
    }
  });
});

describe('a twin that wakes late', () => {
  it('invariant 5: storage refuses a fresh parent after the split, since the claim it belongs to has run out', async () => {
    const world = await World.create({ maxShardEntryCount: 4 });
    const first = entries(3, ROOT);
    await world.pending.record(first);
    // The twin reads the rows and an empty listing, and falls asleep over creating the parent.
    let wake: () => void = () => undefined;
    let asleep: () => void = () => undefined;
    const fallsAsleep = new Promise<void>((resolve) => {
      asleep = resolve;
    });
    world.storage.onRequest = async (request) => {
      if (request.kind === 'blob-write' && request.phase === 'before') {
        world.storage.onRequest = undefined;
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        asleep();
        await woken;
      }
    };
    const twin = world.index().flushRoot(ROOT, { jobId: 'job', owner: 'same' });
    await fallsAsleep;

    const more = entries(20, ROOT, 50);
    await world.pending.record(more);
    world.clock.advance(ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS);
    await world.complete(world.index(), 'job');
    const split = describeLayout(await layoutOf(world));
    expect(split).toEqual(freshLayout([...first, ...more], 4));

    world.watch();
    wake();
    // It claims the root anew, finds nothing left to do, and reports so.
    expect(await twin).toMatchObject({ shardsWritten: 0 });
    expect(await world.shardNames()).not.toContain(ROOT);
    expect(describeLayout(await layoutOf(world))).toEqual(split);
    const layout = await layoutOf(world);
    expect([...first, ...more].filter((entry) => parentWins(layout, entry.contentHash) === undefined)).toEqual([]);
  });

  it('invariant 5: run late for a job that is done, it changes nothing, and settle finds nothing to do', async () => {
    const world = await World.create({ maxShardEntryCount: 4 });
    const list = entries(30, ROOT);
    await world.pending.record(list);
    const job = { jobId: 'job', owner: 'same' };
    await world.complete(world.index(), 'job');
    const done = describeLayout(await layoutOf(world));
    await world.index().flushRoot(ROOT, job);
    expect(await world.index().settleRoot(ROOT, job)).toEqual({ settled: 0, remaining: 0, flushAgain: false });
    expect(describeLayout(await layoutOf(world))).toEqual(done);
  });
});
