import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Archive } from './support/archive.ts';

describe('lookup', () => {
  it('sends no look at chunks while no other run is unfinished', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const known = await archive.recordLarge(runId, 'known');
    await archive.uploadLarge('committed, not recorded');
    const hashes = [known, archive.hashOf('committed, not recorded'), archive.hashOf('nowhere')];
    const heads = archive.counting.counts()['blob-head'];
    const answer = await archive.service.lookup.lookup('photos', { hashes, runId });
    expect(answer.known.map((entry) => entry.contentHash)).toEqual([known]);
    expect(answer.missing).toEqual(hashes.slice(1));
    expect(archive.counting.counts()['blob-head']).toBe(heads);
  });

  it('AR-01 AR-03: after an interrupted run, committed chunks are found, recorded and not uploaded again', async () => {
    const archive = await new Archive().create();
    await archive.startRun();
    const large = await archive.uploadLarge('uploaded before the crash');
    const runId = await archive.startRun();
    const nowhere = archive.hashOf('nowhere');
    const answer = await archive.service.lookup.lookup('photos', { hashes: [large, nowhere], runId });
    expect(answer).toMatchObject({ known: [{ contentHash: large, chunkHash: large }], missing: [nowhere] });
    expect(await archive.pendingRows()).toBe(1);
  });

  it('AR-02: members whose stubs were written before the crash are found one by one', async () => {
    const archive = await new Archive().create();
    const first = await archive.startRun();
    const tarHash = await archive.uploadTar('a tar');
    const members = [{ contentHash: archive.hashOf('one') as string, originalSize: 3 }];
    archive.memory.onRequest = ({ phase, container, kind }) => {
      if (phase === 'before' && container === 'pending' && kind === 'row-batch') {
        throw new Error('crash');
      }
    };
    const interrupted = archive.service.recording.members('photos', tarHash, { runId: first, members });
    await expect(interrupted).rejects.toThrow('crash');
    archive.memory.onRequest = undefined;
    const runId = await archive.startRun();
    const hashes = [archive.hashOf('one'), archive.hashOf('two')];
    const answer = await archive.service.lookup.lookup('photos', { hashes, runId });
    expect(answer).toMatchObject({ known: [{ contentHash: hashes[0], chunkHash: tarHash }], missing: [hashes[1]] });
  });

  it('also when the same run was started again', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const large = await archive.uploadLarge('uploaded before the crash');
    expect((await archive.service.lookup.lookup('photos', { hashes: [large], runId })).known).toEqual([]);
    await archive.startRun('nas:/photos', runId);
    expect((await archive.service.lookup.lookup('photos', { hashes: [large], runId })).known).toHaveLength(1);
  });

  it('leaves debris, and chunks of other kinds, to the upload of their file', async () => {
    const archive = await new Archive().create();
    await archive.startRun();
    const debris = archive.hashOf('half uploaded');
    await archive.uploadDebris(debris);
    const tarHash = await archive.uploadTar('a tar');
    const answer = await archive.service.lookup.lookup('photos', { hashes: [debris, tarHash], runId: randomUUID() });
    expect(answer).toEqual({ known: [], missing: [debris, tarHash] });
    expect(await archive.pendingRows()).toBe(0);
  });

  it('for a restore, asks the index alone: a chunk that no entry names is a miss', async () => {
    const archive = await new Archive().create();
    await archive.startRun();
    const large = await archive.uploadLarge('committed, not recorded');
    const answer = await archive.service.lookup.lookup('photos', { hashes: [large], purpose: 'restore' });
    expect(answer.missing).toEqual([large]);
  });

  it('answers each hash once, however often it was asked for', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const known = await archive.recordLarge(runId, 'known');
    const answer = await archive.service.lookup.lookup('photos', { hashes: [known, known], runId });
    expect(answer.known).toHaveLength(1);
  });
});
