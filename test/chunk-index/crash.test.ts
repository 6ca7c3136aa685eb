/**
 * The process dies at every single request of a flush and settle, just before the request is applied and just after;
 * then everything is looked at with both readers, and a new process finishes the work.
 */

import { describe, expect, it } from 'vitest';
import type { ShardEntry } from '../../src/repository/shard-entry.ts';
import type { RequestHook, StorageRequest } from '../../src/storage/memory/gate.ts';
import { StorageUnanswered } from '../../src/storage/refusal.ts';
import { describeLayout, freshLayout, layoutOf, parentWins, textOf } from './readers.ts';
import { describeRequest, entries, entryOf, hash, hashesOf, World } from './world.ts';

const MAX = 4;

interface Scene {
  readonly name: string;
  /** Flushed and published before anything happens. */
  readonly published: readonly ShardEntry[];
  /** What other clients left: shards beside those of the published layout. */
  readonly leftovers: Readonly<Record<string, readonly ShardEntry[]>>;
  /** Recorded, and flushed while the process dies. */
  readonly recorded: readonly ShardEntry[];
}

const SCENES: readonly Scene[] = [
  {
    name: 'a split three levels deep',
    published: [...entries(2, 'aa1'), ...entries(2, 'aa7')],
    leftovers: {},
    recorded: [...entries(7, 'aa111', 20), ...entries(3, 'aa12', 20), ...entries(2, 'aa9', 20)],
  },
  {
    name: 'a leaf that splits beside leaves that do not',
    published: [...entries(4, 'aa1'), ...entries(3, 'aa7')],
    leftovers: {},
    recorded: [...entries(4, 'aa1', 20), ...entries(1, 'aa7', 20)],
  },
  {
    name: 'a split that another client interrupted, with stale shards two levels deep',
    published: [...entries(2, 'aa1'), ...entries(2, 'aa7')],
    leftovers: { aa1: [...entries(2, 'aa1'), entryOf(hash(60, 'aa1'))], aa77: [entryOf(hash(61, 'aa77'))] },
    recorded: [...entries(3, 'aa1', 20), entryOf(hash(61, 'aa77'), { tier: 'hot' })],
  },
  {
    name: 'an empty root that is split at once',
    published: [],
    leftovers: {},
    recorded: [...entries(3, 'aa3'), ...entries(5, 'aa5')],
  },
  {
    name: 'a parent that holds everything again',
    published: entries(2, 'aa'),
    leftovers: { aa4: [entryOf(hash(62, 'aa4'))] },
    recorded: [],
  },
];

async function worldOf(scene: Scene): Promise<World> {
  const world = await World.create({ maxShardEntryCount: MAX });
  await world.pending.record(scene.published);
  await world.complete(world.index(), 'earlier');
  for (const [prefix, list] of Object.entries(scene.leftovers)) {
    const options = { condition: { absent: true } as const, contentType: 'application/zstd' };
    await world.container.write(`chunk-index/${prefix}`, await world.codec.encode(Buffer.from(textOf(list))), options);
  }
  await world.pending.record(scene.recorded);
  return world;
}

/** From the n-th request on (counted before, or after, it is applied) something happens to every one. */
function atRequest(n: number, phase: StorageRequest['phase'], act: (request: StorageRequest) => void): RequestHook {
  let requests = 0;
  let done = false;
  return (request) => {
    requests += request.phase === phase ? 1 : 0;
    if (done || requests === n) {
      done = true;
      act(request);
    }
  };
}

function die(request: StorageRequest): never {
  throw new Error(`killed at ${describeRequest(request)}`);
}

async function countRequests(scene: Scene): Promise<number> {
  const world = await worldOf(scene);
  world.watch();
  await world.complete(world.index(), 'job');
  return world.requests.length;
}

function wholeContent(scene: Scene): ShardEntry[] {
  return [...scene.published, ...Object.values(scene.leftovers).flat(), ...scene.recorded];
}

/** What every reader must see whatever happened: ours everything, the other one what was published. */
async function expectReadable(world: World, scene: Scene): Promise<void> {
  const everything = [...scene.published, ...scene.recorded];
  const found = await world.index().lookup(hashesOf(everything));
  expect(everything.filter((entry) => !found.has(entry.contentHash))).toEqual([]);
  const layout = await layoutOf(world);
  const hidden = scene.published.filter((entry) => parentWins(layout, entry.contentHash) === undefined);
  expect(hidden).toEqual([]);
}

async function expectFinished(world: World, scene: Scene): Promise<void> {
  expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(wholeContent(scene), MAX));
  expect((await world.pending.census()).rows).toBe(0);
  const layout = await layoutOf(world);
  for (const entry of wholeContent(scene)) {
    expect(parentWins(layout, entry.contentHash)).toBeDefined();
  }
}

describe.each(SCENES)('$name', (scene) => {
  it('invariants 4 and 5: killed at any request, before or after it, everything stays readable and a new process converges', async () => {
    const requests = await countRequests(scene);
    expect(requests).toBeGreaterThan(10);
    for (let n = 1; n <= requests; n += 1) {
      for (const phase of ['before', 'after'] as const) {
        const world = await worldOf(scene);
        world.storage.onRequest = atRequest(n, phase, die);
        await expect(world.complete(world.index(), 'job')).rejects.toThrow(/killed/);
        world.storage.onRequest = undefined;
        await expectReadable(world, scene);
        await world.complete(world.index(), `retry`);
        await expectFinished(world, scene);
      }
    }
  });

  it('invariant 5: the same job again, as the engine does it, converges too', async () => {
    const requests = await countRequests(scene);
    for (let n = 1; n <= requests; n += 3) {
      const world = await worldOf(scene);
      world.storage.onRequest = atRequest(n, 'after', die);
      await expect(world.complete(world.index(), 'job')).rejects.toThrow(/killed/);
      world.storage.onRequest = undefined;
      await world.complete(world.index(), 'job');
      await expectFinished(world, scene);
    }
  });

  it('killed twice in a row, at any two requests, it still converges', async () => {
    const requests = await countRequests(scene);
    for (let first = 1; first <= requests; first += 5) {
      for (let second = 1; second <= requests; second += 7) {
        const world = await worldOf(scene);
        for (const n of [first, second]) {
          world.storage.onRequest = atRequest(n, 'before', die);
          // The second process may find less to do and get through.
          await world
            .complete(world.index(), `job-${n}`)
            .catch((error: Error) => expect(error.message).toMatch(/killed/));
          world.storage.onRequest = undefined;
          await expectReadable(world, scene);
        }
        await world.complete(world.index(), 'retry');
        await expectFinished(world, scene);
      }
    }
  });

  it('a response lost at any request changes nothing: the request is repeated and finds its own work', async () => {
    const requests = await countRequests(scene);
    for (let n = 1; n <= requests; n += 1) {
      for (const phase of ['before', 'after'] as const) {
        const world = await worldOf(scene);
        let lost = false;
        world.storage.onRequest = atRequest(n, phase, () => {
          if (!lost) {
            lost = true;
            throw new StorageUnanswered('lost');
          }
        });
        await world.complete(world.index(), 'job');
        expect(lost).toBe(true);
        world.storage.onRequest = undefined;
        await expectFinished(world, scene);
      }
    }
  });
});

describe('a write whose response never comes', () => {
  it('keeps the claim until its deadline: nobody writes while it may still arrive', async () => {
    const world = await World.create({ maxShardEntryCount: MAX });
    await world.pending.record(entries(3, 'aa'));
    const silence: RequestHook = (request) => {
      if (request.kind === 'blob-write' && request.phase === 'after') throw new StorageUnanswered('silence');
    };
    world.storage.onRequest = silence;
    const job = { jobId: 'job', owner: 'test' };
    await expect(world.index().flushRoot('aa', job)).rejects.toMatchObject({ code: 'storage-failed' });
    world.storage.onRequest = undefined;
    expect(await world.pending.claimRoot('aa', 'another', world.clock.now())).toBeUndefined();
    await world.complete(world.index());
    expect(describeLayout(await layoutOf(world))).toEqual(freshLayout(entries(3, 'aa'), MAX));
  });

  it('a read that fails gives the claim back at once', async () => {
    const world = await World.create();
    await world.pending.record(entries(3, 'aa'));
    world.storage.onRequest = (request) => {
      if (request.kind === 'blob-list') throw new StorageUnanswered('silence');
    };
    const job = { jobId: 'job', owner: 'test' };
    await expect(world.index().flushRoot('aa', job)).rejects.toMatchObject({ code: 'storage-failed' });
    world.storage.onRequest = undefined;
    expect(await world.pending.claimRoot('aa', 'another', world.clock.now())).toBeDefined();
  });
});
