import { describe, expect, it } from 'vitest';
import { Archive, file, folder } from '../service/support/archive.ts';
import { Engine } from './support/engine.ts';

describe.each([
  ['plain', {}],
  ['sealed', { passphrase: 'correct horse' }],
])('completing a run of a %s repository', (_kind, options) => {
  it('invariant 1: flushes, settles, verifies, publishes and promotes, in this order', async () => {
    const archive = await new Archive(options).create();
    const engine = new Engine(archive.service, archive.clock);
    const runId = await archive.startRun();
    const a = await archive.recordLarge(runId, 'first file');
    const b = await archive.recordLarge(runId, 'second file');
    const sub = await archive.uploadTree([file('b.jpg', b)]);
    const root = await archive.uploadTree([file('a.jpg', a), folder('sub', sub)]);
    const operationId = await archive.complete(runId, root, 2);

    await engine.dispatch(archive.name);

    const operation = await archive.service.operations.get(archive.name, operationId);
    expect(operation).toMatchObject({ state: 'succeeded', phase: 'done', error: null });
    expect(operation.result).toMatchObject({ snapshotPublished: true, entriesRecorded: 2 });
    const run = await archive.service.runs.get(archive.name, runId);
    expect(run).toMatchObject({ state: 'completed', snapshot: operation.result?.snapshot });
    const snapshot = await archive.service.snapshots.get(archive.name, String(run.snapshot));
    expect(snapshot).toMatchObject({ rootHash: root, source: 'nas:/photos', runId, fileCount: 2 });
    expect((await archive.service.repositories.get(archive.name)).epoch).toBe(run.snapshot);
    expect(await archive.pendingRows()).toBe(0);
    const cold = archive.newService();
    const found = await cold.lookup.lookup(archive.name, { hashes: [a, b], purpose: 'restore' });
    expect(found.missing).toEqual([]);
    const order = engine.calls.map((call) => call.name);
    const phases = ['flushRoot', 'bumpLayoutVersion', 'settleRoot', 'verifySlice', 'publishSnapshot', 'promoteEpoch'];
    const firsts = phases.map((name) => order.indexOf(name));
    expect(firsts).toEqual([...firsts].sort((x, y) => x - y));
    expect(order.lastIndexOf('flushRoot')).toBeLessThan(order.indexOf('settleRoot'));
  });
});
