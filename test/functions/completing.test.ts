import { describe, expect, it } from 'vitest';
import { AriusError } from '../../src/errors.ts';
import type { FileTreeHash } from '../../src/hashing/hashes.ts';
import { CHUNK_INDEX_PREFIX, SNAPSHOTS_PREFIX, snapshotBlobName } from '../../src/repository/blob-names.ts';
import { parseSnapshot, serializeSnapshot, snapshotNameOf } from '../../src/repository/snapshot.ts';
import { ticksOfMilliseconds } from '../../src/repository/timestamps.ts';
import { Archive, file, folder } from '../service/support/archive.ts';
import { Engine, EngineStopped } from './support/engine.ts';

interface Ready {
  readonly archive: Archive;
  readonly engine: Engine;
  readonly runId: string;
  readonly operationId: string;
  readonly root: FileTreeHash;
}

/** A run of two files in two folders, completed, its job waiting. */
async function readyRun(options: ConstructorParameters<typeof Archive>[0] = {}): Promise<Ready> {
  const archive = await new Archive(options).create();
  const runId = await archive.startRun();
  const root = await uploadTwoFiles(archive, runId);
  const operationId = await archive.complete(runId, root, 2);
  return { archive, engine: new Engine(archive.service, archive.clock), runId, operationId, root };
}

async function uploadTwoFiles(archive: Archive, runId: string, text = ''): Promise<FileTreeHash> {
  const a = await archive.recordLarge(runId, `first file${text}`);
  const b = await archive.recordLarge(runId, `second file${text}`);
  return await archive.uploadTree([file('a.jpg', a), folder('sub', await archive.uploadTree([file('b.jpg', b)]))]);
}

async function operationOf(ready: Ready): ReturnType<Ready['archive']['service']['operations']['get']> {
  return await ready.archive.service.operations.get('photos', ready.operationId);
}

describe.each([
  ['plain', {}],
  ['sealed', { passphrase: 'correct horse' }],
])('completing a run of a %s repository', (_kind, options) => {
  it('invariant 1: flushes, settles, verifies, publishes and promotes, in this order', async () => {
    const ready = await readyRun(options);
    const { archive, engine, runId, root } = ready;
    await engine.dispatch('photos');

    const operation = await operationOf(ready);
    expect(operation).toMatchObject({ state: 'succeeded', phase: 'done', progress: null, error: null });
    expect(operation.result).toMatchObject({ snapshotPublished: true, entriesRecorded: 2 });
    const run = await archive.service.runs.get('photos', runId);
    expect(run).toMatchObject({ state: 'completed', snapshot: operation.result?.snapshot });
    const snapshot = await archive.service.snapshots.get('photos', String(run.snapshot));
    expect(snapshot).toMatchObject({ rootHash: root, source: 'nas:/photos', runId, fileCount: 2 });
    expect((await archive.service.repositories.get('photos')).epoch).toBe(run.snapshot);
    expect(await archive.pendingRows()).toBe(0);
    const hashes = ['first file', 'second file'].map((text) => archive.hashOf(text));
    const found = await archive.newService().lookup.lookup('photos', { hashes, purpose: 'restore' });
    expect(found.missing).toEqual([]);

    const order = engine.calls.map((call) => call.name);
    const phases = ['flushRoot', 'bumpLayoutVersion', 'settleRoot', 'verifySlice', 'publishSnapshot', 'promoteEpoch'];
    const firsts = phases.map((name) => order.indexOf(name));
    expect(firsts).toEqual([...firsts].sort((x, y) => x - y));
    expect(order.lastIndexOf('flushRoot')).toBeLessThan(order.indexOf('settleRoot'));
    expect(await archive.staging.listPage('photos/complete')).toMatchObject({ blobs: [] });
  });

  it('AR-13: an operation goes through its phases in order', async () => {
    const ready = await readyRun(options);
    const phases = new Set([(await operationOf(ready)).phase]);
    ready.engine.afterStep = async () => {
      phases.add((await operationOf(ready)).phase);
    };
    await ready.engine.dispatch('photos');
    expect([...phases].join(' ')).toBe('waiting planning flushing settling verifying publishing promoting done');
  });

  it('SN-03 SN-11: the snapshot is a manifest of the format under the name of its time', async () => {
    const { archive, engine, runId, root } = await readyRun(options);
    archive.clock.advance(123);
    await engine.dispatch('photos');
    const name = '2026-05-01T120000.123Z';
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([snapshotBlobName(name)]);
    const head = await archive.container.head(snapshotBlobName(name));
    const contentType = archive.codec.sealed ? 'application/aes256gcm+zstd' : 'application/zstd';
    expect(head).toMatchObject({ contentType, tier: 'cool', metadata: {} });
    const manifest = parseSnapshot(await archive.codec.decode(await archive.bodyOf(snapshotBlobName(name)), 10_000));
    expect(manifest).toMatchObject({ rootHash: root, runId, source: 'nas:/photos', fileCount: 2, originalSize: 10 });
    expect(snapshotNameOf(manifest.timestampTicks)).toBe(name);
  });
});

describe('after a publication', () => {
  it('AR-12 LK-11: the instance goes on without asking storage about shards again', async () => {
    const { archive, engine } = await readyRun();
    await engine.dispatch('photos');
    const runId = await archive.startRun();
    const hashes = ['first file', 'second file'].map((text) => archive.hashOf(text));
    const before = archive.counting.counts();
    const { missing } = await archive.service.lookup.lookup('photos', { hashes, runId });
    expect(missing).toEqual([]);
    const after = archive.counting.counts();
    expect([after['blob-list'], after['blob-read'], after['blob-head']]).toEqual([
      before['blob-list'],
      before['blob-read'],
      before['blob-head'],
    ]);
  });
});

describe('a run that changes nothing', () => {
  it('publishes no snapshot when the root is that of the newest of its source, and flushes all the same', async () => {
    const ready = await readyRun();
    const { archive, engine, root } = ready;
    await engine.dispatch('photos');
    const newest = (await operationOf(ready)).result?.snapshot;
    const again = await archive.startRun();
    expect(await archive.service.runs.get('photos', again)).toMatchObject({ newestSnapshot: { name: newest } });
    await archive.recordLarge(again, 'vanished before the tree was made');
    const operationId = await archive.complete(again, root);
    archive.clock.advance(1000);
    await engine.dispatch('photos');
    const operation = await archive.service.operations.get('photos', operationId);
    expect(operation.result).toMatchObject({ snapshot: newest, snapshotPublished: false, entriesRecorded: 1 });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toHaveLength(1);
    expect(await archive.pendingRows()).toBe(0);
  });

  it('publishes none when the folder held no file', async () => {
    const archive = await new Archive().create();
    const operationId = await archive.complete(await archive.startRun(), null, 0);
    await new Engine(archive.service, archive.clock).dispatch('photos');
    const operation = await archive.service.operations.get('photos', operationId);
    expect(operation).toMatchObject({ state: 'succeeded', result: { snapshot: null, snapshotPublished: false } });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([]);
  });

  it('but publishes the same tree for another source', async () => {
    const { archive, engine, root } = await readyRun();
    await engine.dispatch('photos');
    archive.clock.advance(1000);
    const operationId = await archive.complete(await archive.startRun('laptop:/photos'), root);
    await engine.dispatch('photos');
    const operation = await archive.service.operations.get('photos', operationId);
    expect(operation.result).toMatchObject({ snapshotPublished: true });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toHaveLength(2);
  });
});

describe('a flush that fails', () => {
  it('AR-09 SC-5 invariant 9: publishes nothing, keeps every entry, and goes on when it is tried again', async () => {
    const ready = await readyRun();
    const { archive, engine, runId, root } = ready;
    archive.memory.onRequest = ({ phase, kind, name }) => {
      if (phase === 'before' && kind === 'blob-write' && name.startsWith(CHUNK_INDEX_PREFIX)) {
        throw new AriusError('storage-failed', 'The storage is away.', 'Try again.');
      }
    };
    await engine.dispatch('photos');
    expect(await operationOf(ready)).toMatchObject({ state: 'failed', error: { code: 'pending-not-flushed' } });
    expect(await archive.service.runs.get('photos', runId)).toMatchObject({ state: 'failed', snapshot: null });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([]);
    expect(await archive.pendingRows()).toBe(2);
    expect(engine.calls.some((call) => call.name === 'settleRoot')).toBe(false);

    archive.memory.onRequest = undefined;
    // A claim whose outcome is unknown is not given back: its time has to pass.
    archive.clock.advance(10 * 60_000);
    expect(await archive.complete(runId, root, 2)).toBe(ready.operationId);
    await engine.dispatch('photos');
    expect(await operationOf(ready)).toMatchObject({ state: 'succeeded', result: { snapshotPublished: true } });
    expect(await archive.pendingRows()).toBe(0);
  });

  it('AR-09: settles nothing while one root of many has not uploaded', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const files = [];
    for (let index = 0; index < 12; index++) {
      files.push(file(`${String(index).padStart(2, '0')}.jpg`, await archive.recordLarge(runId, `file ${index}`)));
    }
    const operationId = await archive.complete(runId, await archive.uploadTree(files), 12);
    const engine = new Engine(archive.service, archive.clock);
    const [failing] =
      (await archive.service.openRepositories.get('photos').then((open) => open.index.rootsToFlush())) ?? [];
    engine.beforeStep = ({ name, input }) => {
      if (name === 'flushRoot' && input.root === failing) {
        throw new Error('the platform ended the activity');
      }
    };
    await engine.dispatch('photos');
    const operation = await archive.service.operations.get('photos', operationId);
    expect(operation).toMatchObject({ state: 'failed', error: { code: 'internal' } });
    expect(operation.error?.detail).not.toContain('the platform ended the activity');
    expect(await archive.pendingRows()).toBe(12);
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([]);
  });

  it('invariant 9: a corrupt shard is told apart, and names the blob', async () => {
    const ready = await readyRun();
    const { archive, engine } = ready;
    const root = archive.hashOf('first file').slice(0, 2);
    await archive.container.write(`${CHUNK_INDEX_PREFIX}${root}`, Buffer.from('not a shard'), {
      condition: { absent: true },
      contentType: 'application/zstd',
    });
    await engine.dispatch('photos');
    const { error } = await operationOf(ready);
    expect(error).toMatchObject({ code: 'chunk-index-corrupt' });
    expect(error?.detail).toContain(`chunk-index/${root}`);
    expect(await archive.pendingRows()).toBe(2);
  });
});

describe('verification', () => {
  it('invariant 1: a folder that is not stored fails the run and is named', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const a = await archive.recordLarge(runId, 'first file');
    const lost = archive.hasher.fileTreeHash(Buffer.from('never uploaded'));
    const inner = await archive.uploadTree([file('a.jpg', a), folder('lost', lost)]);
    const operationId = await archive.complete(runId, await archive.uploadTree([folder('holidays', inner)]));
    await new Engine(archive.service, archive.clock).dispatch('photos');
    const { error } = await archive.service.operations.get('photos', operationId);
    expect(error).toMatchObject({ code: 'snapshot-incomplete' });
    expect(error?.detail).toContain('holidays/lost');
    expect(error?.detail).toContain(lost);
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([]);
  });

  it('invariant 1: a content that no entry names fails the run and is named', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const a = await archive.recordLarge(runId, 'first file');
    const missing = await archive.uploadLarge('uploaded, never recorded');
    const inner = await archive.uploadTree([file('a.jpg', a), file('b.jpg', missing)]);
    const operationId = await archive.complete(runId, await archive.uploadTree([folder('holidays', inner)]));
    await new Engine(archive.service, archive.clock).dispatch('photos');
    const { error } = await archive.service.operations.get('photos', operationId);
    expect(error).toMatchObject({ code: 'snapshot-incomplete' });
    expect(error?.detail).toContain('holidays/b.jpg');
    expect(error?.detail).toContain(missing);
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([]);
  });
});

describe('the name of a snapshot', () => {
  it('invariant 10: is one millisecond after the newest when the clock is behind it', async () => {
    const ready = await readyRun();
    const { archive, engine } = ready;
    const timestampTicks = ticksOfMilliseconds(archive.clock.now().getTime() + 60_000);
    const foreign = { timestampTicks, rootHash: ready.root, fileCount: 1, originalSize: 1, ariusVersion: 'x' };
    await archive.container.write(
      snapshotBlobName(snapshotNameOf(timestampTicks)),
      await archive.codec.encode(serializeSnapshot(foreign)),
      { condition: { absent: true }, contentType: 'application/zstd' },
    );
    await engine.dispatch('photos');
    expect(await archive.names(SNAPSHOTS_PREFIX)).toEqual([
      'snapshots/2026-05-01T120100.000Z',
      'snapshots/2026-05-01T120100.001Z',
    ]);
    expect((await archive.service.repositories.get('photos')).epoch).toBe('2026-05-01T120100.001Z');
  });

  it('is fixed once: publishing again after the clock moved finds the same snapshot', async () => {
    const ready = await readyRun();
    const { archive, engine } = ready;
    let crashed = false;
    engine.afterStep = ({ name }) => {
      if (name === 'publishSnapshot' && !crashed) {
        crashed = true;
        throw new EngineStopped('crash');
      }
    };
    await expect(engine.dispatch('photos')).rejects.toThrow('crash');
    expect(await operationOf(ready)).toMatchObject({ state: 'running' });
    archive.clock.advance(60_000);
    await new Engine(archive.newService(), archive.clock).dispatch('photos');
    expect(await operationOf(ready)).toMatchObject({ state: 'succeeded', result: { snapshotPublished: true } });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toHaveLength(1);
  });

  it('a foreign snapshot of that very moment is no success', async () => {
    const ready = await readyRun();
    const { archive, engine } = ready;
    archive.memory.onRequest = async ({ phase, kind, name }) => {
      if (phase === 'before' && kind === 'blob-write' && name.startsWith(SNAPSHOTS_PREFIX)) {
        archive.memory.onRequest = undefined;
        const options = { condition: { absent: true }, contentType: 'application/zstd' } as const;
        const timestampTicks = ticksOfMilliseconds(archive.clock.now().getTime());
        const other = { timestampTicks, rootHash: ready.root, fileCount: 9, originalSize: 9, ariusVersion: 'x' };
        await archive.container.write(name, await archive.codec.encode(serializeSnapshot(other)), options);
      }
    };
    await engine.dispatch('photos');
    expect(await operationOf(ready)).toMatchObject({ state: 'failed', error: { code: 'busy' } });
    expect(await archive.names(SNAPSHOTS_PREFIX)).toHaveLength(1);
  });
});

describe('invariant 5: crashes and twins', () => {
  /** What everything must come to, however it came about. */
  async function finalState({ archive, runId, operationId }: Ready): Promise<unknown> {
    const operation = await archive.newService().operations.get('photos', operationId);
    const run = await archive.newService().runs.get('photos', runId);
    return {
      state: operation.state,
      published: operation.result?.snapshotPublished,
      run: run.state,
      pending: await archive.pendingRows(),
      shards: await archive.names(CHUNK_INDEX_PREFIX),
      snapshots: (await archive.names(SNAPSHOTS_PREFIX)).length,
      open: (await archive.service.housekeeping.waitingWork('photos')).dispatcher,
    };
  }

  async function stepsOfOneRun(): Promise<number> {
    const { engine } = await readyRun();
    await engine.dispatch('photos');
    return engine.calls.length;
  }

  it('a crash before or after any step, and the next dispatcher converges', async () => {
    const reference = await readyRun();
    await reference.engine.dispatch('photos');
    const expected = await finalState(reference);
    const steps = await stepsOfOneRun();
    expect(steps).toBeGreaterThan(12);
    for (let crashAt = 0; crashAt < steps; crashAt++) {
      for (const moment of ['before', 'after'] as const) {
        const ready = await readyRun();
        let calls = 0;
        const crash = (): void => {
          if (calls++ === crashAt) {
            throw new EngineStopped('crash');
          }
        };
        ready.engine[moment === 'before' ? 'beforeStep' : 'afterStep'] = crash;
        await expect(ready.engine.dispatch('photos')).rejects.toThrow('crash');
        // Longer than any claim lasts.
        ready.archive.clock.advance(10 * 60_000);
        await new Engine(ready.archive.newService(), ready.archive.clock).dispatch('photos');
        expect(await finalState(ready), `crash ${moment} step ${crashAt}`).toEqual(expected);
      }
    }
  });

  it('a crash at any storage request, its response lost or not, and the next dispatcher converges', async () => {
    const reference = await readyRun();
    let requests = 0;
    reference.archive.memory.onRequest = () => {
      requests += 1;
    };
    await reference.engine.dispatch('photos');
    reference.archive.memory.onRequest = undefined;
    const expected = await finalState(reference);
    expect(requests).toBeGreaterThan(100);
    for (let crashAt = 0; crashAt < requests; crashAt++) {
      const ready = await readyRun();
      let seen = 0;
      let dead = false;
      // From one request on the process is gone: nothing it still tries arrives.
      ready.archive.memory.onRequest = () => {
        dead ||= seen++ === crashAt;
        if (dead) {
          throw new Error('crash');
        }
      };
      ready.engine.afterStep = () => {
        if (dead) {
          throw new EngineStopped('crash');
        }
      };
      await expect(ready.engine.dispatch('photos')).rejects.toThrow('crash');
      ready.archive.memory.onRequest = undefined;
      ready.archive.clock.advance(10 * 60_000);
      await new Engine(ready.archive.newService(), ready.archive.clock).dispatch('photos');
      expect(await finalState(ready), `crash at request ${crashAt}`).toEqual(expected);
    }
  }, 120_000);

  it('every step run twice changes nothing', async () => {
    const reference = await readyRun();
    await reference.engine.dispatch('photos');
    const ready = await readyRun();
    ready.engine.runTwice = () => true;
    await ready.engine.dispatch('photos');
    expect(await finalState(ready)).toEqual(await finalState(reference));
  });

  it('a late dispatcher takes no job from a later one', async () => {
    const { archive, engine } = await readyRun();
    const began = archive.clock.now().getTime();
    const taker = (beganAtMs: number): { owner: string; beganAtMs: number } => ({
      owner: 'dispatcher-photos',
      beganAtMs,
    });
    const taken = await archive.service.steps.takeNext('photos', taker(began + 10));
    expect(taken).toMatchObject({ attempt: 1 });
    expect(await archive.service.steps.takeNext('photos', taker(began))).toBeNull();
    expect(await archive.service.steps.takeNext('photos', taker(began + 10))).toEqual(taken);
    expect(await archive.service.steps.takeNext('photos', taker(began + 20))).toMatchObject({ attempt: 2 });
    expect(engine.calls).toEqual([]);
  });

  it('a job that never ends is given up after some attempts', async () => {
    const ready = await readyRun();
    for (let attempt = 0; attempt < 6; attempt++) {
      ready.archive.clock.advance(60_000);
      const engine = new Engine(ready.archive.newService(), ready.archive.clock);
      engine.beforeStep = ({ name }) => {
        if (name === 'planCompletion') {
          throw new EngineStopped('crash');
        }
      };
      await engine.dispatch('photos').catch(() => undefined);
    }
    expect(await operationOf(ready)).toMatchObject({ state: 'failed', error: { code: 'internal' } });
  });
});

describe('the dispatcher', () => {
  it('runs the waiting jobs of a repository one after another, oldest first', async () => {
    const archive = await new Archive().create();
    const operations: string[] = [];
    for (const source of ['one', 'two', 'three']) {
      const runId = await archive.startRun(source);
      const root = await uploadTwoFiles(archive, runId, source);
      archive.clock.advance(1000);
      operations.push(await archive.complete(runId, root));
    }
    const engine = new Engine(archive.service, archive.clock);
    await engine.dispatch('photos');
    const finished = engine.calls
      .filter((call) => call.name === 'finishCompletion')
      .map((call) => call.input.operationId);
    expect(finished).toEqual(operations);
    expect(await archive.names(SNAPSHOTS_PREFIX)).toHaveLength(3);
    expect(engine.calls.filter((call) => call.name === 'takeNextJob')).toHaveLength(4);
  });

  it('ends a job whose orchestration the engine gave up, and goes on with the next', async () => {
    const archive = await new Archive().create();
    const first = await archive.complete(await archive.startRun('one'), null, 0);
    archive.clock.advance(1000);
    const second = await archive.complete(await archive.startRun('two'), null, 0);
    const engine = new Engine(archive.service, archive.clock);
    let given = false;
    engine.beforeStep = ({ name }) => {
      if (name === 'finishCompletion' && !given) {
        given = true;
        throw new Error('gone');
      }
    };
    await engine.dispatch('photos');
    expect(await archive.service.operations.get('photos', first)).toMatchObject({
      state: 'failed',
      error: { code: 'internal' },
    });
    expect(await archive.service.operations.get('photos', second)).toMatchObject({ state: 'succeeded' });
  });

  it('has nothing to do when nothing waits', async () => {
    const archive = await new Archive().create();
    const engine = new Engine(archive.service, archive.clock);
    await engine.dispatch('photos');
    expect(engine.calls.map((call) => call.name)).toEqual(['takeNextJob']);
  });
});
