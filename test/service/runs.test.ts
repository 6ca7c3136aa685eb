import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RUN_EXPIRES_MS, RUN_TOUCH_INTERVAL_MS } from '../../src/limits.ts';
import { Archive } from './support/archive.ts';

const facts = { rootHash: 'ab'.repeat(32), fileCount: 3, originalSize: 30 };

describe('starting a run', () => {
  it('is idempotent in the run id, and refuses other facts', async () => {
    const archive = await new Archive().create();
    const runId = randomUUID();
    const request = { runId, source: 'nas:/photos', tier: 'cold' } as const;
    const first = await archive.service.runs.start('photos', request);
    expect(first).toMatchObject({ state: 'started', tier: 'cold', newestSnapshot: null, operationId: null });
    archive.clock.advance(1000);
    expect(await archive.service.runs.start('photos', request)).toEqual(first);
    expect(await archive.service.runs.start('photos', { runId, source: 'nas:/photos' })).toEqual(first);
    const other = archive.service.runs.start('photos', { ...request, source: 'nas:/videos' });
    await expect(other).rejects.toMatchObject({ code: 'run-conflict' });
    expect(await archive.service.runs.get('photos', runId)).toEqual(first);
  });

  it('two starts at once make one run', async () => {
    const archive = await new Archive().create();
    const request = { runId: randomUUID(), source: 'nas:/photos' };
    const [one, two] = await Promise.all([
      archive.service.runs.start('photos', request),
      archive.newService().runs.start('photos', request),
    ]);
    expect(one).toEqual(two);
  });

  it('says when there is no such run', async () => {
    const archive = await new Archive().create();
    await expect(archive.service.runs.get('photos', randomUUID())).rejects.toMatchObject({ code: 'run-not-found' });
  });
});

describe('completing a run', () => {
  it('queues one job, however often it is asked for', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    const first = await archive.service.runs.complete('photos', runId, facts);
    expect(first).toMatchObject({ operationId: `complete-${runId}`, kind: 'complete', state: 'waiting' });
    expect(await archive.service.runs.complete('photos', runId, facts)).toEqual(first);
    expect((await archive.service.housekeeping.waitingWork('photos')).dispatcher).toBe(true);
    expect(await archive.service.runs.get('photos', runId)).toMatchObject({
      state: 'completing',
      operationId: first.operationId,
    });
  });

  it('refuses other facts than the first', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    await archive.service.runs.complete('photos', runId, facts);
    for (const other of [{ rootHash: null }, { fileCount: 4 }, { originalSize: 31 }]) {
      const again = archive.service.runs.complete('photos', runId, { ...facts, ...other });
      await expect(again).rejects.toMatchObject({ code: 'run-conflict' });
    }
  });

  it('mends a crash between the row of the run and its job', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    archive.memory.onRequest = ({ phase, container }) => {
      if (phase === 'before' && container === 'jobs') {
        throw new Error('crash');
      }
    };
    await expect(archive.service.runs.complete('photos', runId, facts)).rejects.toThrow('crash');
    archive.memory.onRequest = undefined;
    expect(await archive.service.runs.complete('photos', runId, facts)).toMatchObject({ state: 'waiting' });
  });
});

describe('a run that nobody completes', () => {
  it('expires after a week without a sign of life, not after a week', async () => {
    const archive = await new Archive().create();
    const slow = await archive.startRun();
    const abandoned = await archive.startRun('nas:/videos');
    for (let passed = 0; passed <= RUN_EXPIRES_MS; passed += RUN_TOUCH_INTERVAL_MS * 2) {
      archive.clock.advance(RUN_TOUCH_INTERVAL_MS * 2);
      await archive.service.recording.entries('photos', { runId: slow, contentHashes: ['ab'.repeat(32)] });
    }
    expect(await archive.service.housekeeping.expireRuns('photos')).toBe(1);
    expect(await archive.service.runs.get('photos', slow)).toMatchObject({ state: 'started' });
    expect(await archive.service.runs.get('photos', abandoned)).toMatchObject({ state: 'expired' });
    const completed = archive.service.runs.complete('photos', abandoned, facts);
    await expect(completed).rejects.toMatchObject({ code: 'run-conflict' });
  });

  it('is not ended while its job waits', async () => {
    const archive = await new Archive().create();
    const runId = await archive.startRun();
    await archive.service.runs.complete('photos', runId, facts);
    archive.clock.advance(RUN_EXPIRES_MS + 1);
    expect(await archive.service.housekeeping.expireRuns('photos')).toBe(0);
    expect(await archive.service.runs.get('photos', runId)).toMatchObject({ state: 'completing' });
  });
});
