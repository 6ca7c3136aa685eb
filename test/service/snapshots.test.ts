import { describe, expect, it } from 'vitest';
import { parseFileTreeHash } from '../../src/hashing/hashes.ts';
import { SNAPSHOTS_PREFIX, snapshotBlobName } from '../../src/repository/blob-names.ts';
import { serializeSnapshot, snapshotNameOf } from '../../src/repository/snapshot.ts';
import { parseTimestamp } from '../../src/repository/timestamps.ts';
import { Archive } from './support/archive.ts';

const rootHash = parseFileTreeHash('ab'.repeat(32));

async function publish(archive: Archive, time: string, source?: string): Promise<string> {
  const timestampTicks = parseTimestamp(time);
  const manifest = {
    timestampTicks,
    rootHash,
    fileCount: 1,
    originalSize: 2,
    ariusVersion: '1',
    ...(source === undefined ? {} : { source }),
  };
  const name = snapshotNameOf(timestampTicks);
  await put(archive, snapshotBlobName(name), await archive.codec.encode(serializeSnapshot(manifest)));
  return name;
}

async function put(archive: Archive, name: string, body: Uint8Array): Promise<void> {
  await archive.container.write(name, body, { condition: { absent: true }, contentType: 'application/zstd' });
}

const all = { source: undefined, continuation: undefined };

describe.each([
  ['plain', {}],
  ['sealed', { passphrase: 'correct horse' }],
])('the snapshots of a %s repository', (_kind, options) => {
  it('SN-12 SN-16: are listed oldest first, whatever the order they were written in', async () => {
    const archive = await new Archive(options).create();
    const second = await publish(archive, '2026-03-22T15:00:00.1234567Z', 'nas:/photos');
    const first = await publish(archive, '2025-01-01T00:00:00Z');
    const third = await publish(archive, '2026-03-22T15:00:00.124Z', 'nas:/videos');
    const { snapshots, continuation, unreadable } = await archive.service.snapshots.list('photos', all);
    expect(snapshots.map((snapshot) => snapshot.name)).toEqual([first, second, third]);
    expect(snapshots.map((snapshot) => snapshot.source)).toEqual([null, 'nas:/photos', 'nas:/videos']);
    expect(snapshots[1]).toMatchObject({ timestamp: '2026-03-22T15:00:00.1234567+00:00', rootHash, fileCount: 1 });
    expect([continuation, unreadable]).toEqual([null, undefined]);
    const ofOne = await archive.service.snapshots.list('photos', { ...all, source: 'nas:/videos' });
    expect(ofOne.snapshots.map((snapshot) => snapshot.name)).toEqual([third]);
  });

  it('SN-18: one that cannot be read is named and hides no other', async () => {
    const archive = await new Archive(options).create();
    const good = await publish(archive, '2026-03-22T15:00:00Z', 'nas:/photos');
    await put(archive, `${SNAPSHOTS_PREFIX}2026-03-23T150000.000Z`, Buffer.from('not a body'));
    await put(archive, `${SNAPSHOTS_PREFIX}2026-03-24T150000.000Z`, await archive.codec.encode(Buffer.from('{}')));
    const { snapshots, unreadable } = await archive.service.snapshots.list('photos', all);
    expect(snapshots.map((snapshot) => snapshot.name)).toEqual([good]);
    expect(unreadable?.map((each) => each.name)).toEqual(['2026-03-23T150000.000Z', '2026-03-24T150000.000Z']);
    const asked = archive.service.snapshots.get('photos', '2026-03-23T150000.000Z');
    await expect(asked).rejects.toMatchObject({ code: 'blob-corrupt', message: expect.stringContaining('2026-03-23') });
    // A run goes on from the newest one that can be read.
    const run = await archive.service.runs.get('photos', await archive.startRun());
    expect(run.newestSnapshot).toMatchObject({ name: good });
  });
});

describe('snapshots', () => {
  it('SN-14 SN-17: none is an empty list, and a name without snapshot is an error', async () => {
    const archive = await new Archive().create();
    expect(await archive.service.snapshots.list('photos', all)).toEqual({ snapshots: [], continuation: null });
    const asked = archive.service.snapshots.get('photos', '2026-03-22T150000.000Z');
    await expect(asked).rejects.toMatchObject({ code: 'snapshot-not-found' });
  });

  it('SN-10: blobs with other names under the prefix are no snapshots', async () => {
    const archive = await new Archive().create();
    const good = await publish(archive, '2026-03-22T15:00:00Z');
    for (const name of ['readme.txt', '2026-03-22T15:00:00.000Z', '2026/03/22', 'zzz']) {
      await put(archive, SNAPSHOTS_PREFIX + name, Buffer.from('x'));
    }
    expect((await archive.service.snapshots.list('photos', all)).snapshots.map((each) => each.name)).toEqual([good]);
    await archive.startRun();
    expect((await archive.service.repositories.get('photos')).epoch).toBe(good);
  });

  it('are read from storage once, and listed every time', async () => {
    const archive = await new Archive().create();
    await publish(archive, '2026-03-22T15:00:00Z');
    await archive.service.snapshots.list('photos', all);
    const { 'blob-read': reads } = archive.counting.counts();
    await publish(archive, '2026-03-23T15:00:00Z');
    expect((await archive.service.snapshots.list('photos', all)).snapshots).toHaveLength(2);
    expect(archive.counting.counts()['blob-read']).toBe(reads + 1);
  });

  it('come in pages', async () => {
    const archive = await new Archive().create();
    for (let day = 0; day < 1005; day++) {
      const time = new Date(Date.parse('2024-01-01T00:00:00Z') + day * 86_400_000).toISOString();
      await publish(archive, time, 'nas:/photos');
    }
    const first = await archive.service.snapshots.list('photos', all);
    expect(first.snapshots).toHaveLength(1000);
    const rest = await archive.service.snapshots.list('photos', { ...all, continuation: first.continuation ?? '' });
    expect(rest.snapshots).toHaveLength(5);
    expect(rest.continuation).toBeNull();
  });
});

describe('the epoch', () => {
  it('is the newest snapshot that a run found, and never moves back', async () => {
    const archive = await new Archive().create();
    const newest = await publish(archive, '2026-03-23T15:00:00Z');
    await archive.startRun();
    expect((await archive.service.repositories.get('photos')).epoch).toBe(newest);
    const body = await archive.container.head(snapshotBlobName(newest));
    await archive.container.delete(snapshotBlobName(newest), { etag: body?.etag ?? '' });
    await publish(archive, '2026-03-22T15:00:00Z');
    await archive.startRun();
    expect((await archive.service.repositories.get('photos')).epoch).toBe(newest);
  });

  it('a snapshot of another client makes what is known of the index be looked at again', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const hashes = [archive.hashOf('a')];
    await archive.service.lookup.lookup('photos', { hashes, runId });
    const { 'blob-list': warm } = archive.counting.counts();
    await archive.service.lookup.lookup('photos', { hashes, runId });
    expect(archive.counting.counts()['blob-list']).toBe(warm);
    await publish(archive, '2026-03-23T15:00:00Z');
    await archive.startRun();
    const { 'blob-list': started } = archive.counting.counts();
    await archive.service.lookup.lookup('photos', { hashes, runId });
    expect(archive.counting.counts()['blob-list']).toBe(started + 1);
  });
});
