import { describe, expect, it } from 'vitest';
import { AriusError } from '../../src/errors.ts';
import type { NewJob, StoredJob } from '../../src/records/job-queue.ts';
import { TableJobQueue } from '../../src/records/table-job-queue.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';

const at = (second: number): Date => new Date(Date.parse('2026-05-01T12:00:00.000Z') + second * 1000);

function job(operationId: string, second = 0, changes: Partial<NewJob> = {}): NewJob {
  return {
    repository: 'photos',
    operationId,
    kind: 'complete',
    facts: { runId: 'r', rootHash: null },
    now: at(second),
    ...changes,
  };
}

async function newQueue(): Promise<TableJobQueue> {
  const table = new MemoryStorage().table('jobs');
  await table.createIfMissing();
  return new TableJobQueue(table);
}

function there(found: StoredJob | undefined): StoredJob {
  if (found === undefined) {
    throw new Error('The job changed, or is not there');
  }
  return found;
}

const problem = new AriusError('busy', 'detail', 'next', { retryAfterSeconds: 3 }).toProblem();

describe('jobs in a table', () => {
  it('come back as they were written', async () => {
    const queue = await newQueue();
    const added = await queue.add(job('complete-1'));
    expect(added).toMatchObject({ state: 'waiting', phase: 'waiting', attempt: 0, claim: null, facts: { runId: 'r' } });
    expect(await queue.get('photos', 'complete-1')).toEqual(added);
    const notes = { base: null, snapshot: '2026-05-01T120000.000Z', attempt: 2 };
    const progress = { done: 3, total: 256, unit: 'roots' };
    const updated = await queue.update(added, { notes, progress, phase: 'flushing' }, at(1));
    expect(await queue.get('photos', 'complete-1')).toEqual(updated);
    expect(updated).toMatchObject({ notes, progress, updatedAt: at(1) });
  });

  it('are added once: a second one with the same id changes nothing', async () => {
    const queue = await newQueue();
    const first = await queue.add(job('complete-1'));
    const again = await queue.add(job('complete-1', 9, { facts: { runId: 'other' } }));
    expect(again).toEqual(first);
    expect(await queue.openJobs('photos', 'dispatched', 10)).toHaveLength(1);
  });

  it('are open oldest first, by lane and by repository', async () => {
    const queue = await newQueue();
    await queue.add(job('complete-b', 2));
    await queue.add(job('complete-a', 3));
    await queue.add(job('commit-c', 1, { kind: 'commit-chunk' }));
    await queue.add(job('complete-d', 0, { repository: 'photos-two' }));
    const ids = async (lane: 'dispatched' | 'beside'): Promise<string[]> =>
      (await queue.openJobs('photos', lane, 10)).map((open) => open.operationId);
    expect(await ids('dispatched')).toEqual(['complete-b', 'complete-a']);
    expect(await ids('beside')).toEqual(['commit-c']);
    const first = there(await queue.get('photos', 'complete-b'));
    await queue.finish(first, { state: 'succeeded', result: { snapshot: null } }, at(4));
    expect(await ids('dispatched')).toEqual(['complete-a']);
  });

  it('are claimed by ETag: of two that read the same row, one gets it', async () => {
    const queue = await newQueue();
    const added = await queue.add(job('complete-1'));
    const [one, two] = await Promise.all([
      queue.claim(added, 'dispatcher-photos', 1, at(1)),
      queue.claim(added, 'dispatcher-photos', 2, at(1)),
    ]);
    expect([one, two].filter((claimed) => claimed !== undefined)).toHaveLength(1);
    const claimed = there(one ?? two);
    expect(claimed).toMatchObject({ state: 'running', attempt: 1, claim: 'dispatcher-photos:1' });
    const next = there(await queue.claim(claimed, 'dispatcher-photos', 3, at(2)));
    expect(next).toMatchObject({ attempt: 2, claim: 'dispatcher-photos:2', claimedAtMs: 3 });
  });

  it('wait again after a failure, at the end of the queue, with their attempts counted on', async () => {
    const queue = await newQueue();
    const claimed = there(await queue.claim(await queue.add(job('complete-1')), 'd', 1, at(1)));
    const failed = there(await queue.finish(claimed, { state: 'failed', error: problem }, at(2)));
    expect(failed).toMatchObject({ state: 'failed', error: problem, claim: null });
    await queue.add(job('complete-2', 3));
    const waiting = there(await queue.restart(failed, at(4)));
    expect(waiting).toMatchObject({ state: 'waiting', error: null, attempt: 1, queuedAttempt: 1, createdAt: at(0) });
    const open = await queue.openJobs('photos', 'dispatched', 10);
    expect(open.map((each) => each.operationId)).toEqual(['complete-2', 'complete-1']);
  });

  it('count each item of a phase once, and forget them', async () => {
    const queue = await newQueue();
    for (const root of ['00', '01', '01', 'ff']) {
      await queue.markDone('photos', 'complete-1', 'flushing', root);
    }
    await queue.markDone('photos', 'complete-1', 'settling', '00');
    await queue.markDone('photos', 'complete-10', 'flushing', '00');
    expect(await queue.countDone('photos', 'complete-1', 'flushing')).toBe(3);
    await queue.forgetProgress('photos', 'complete-1');
    expect(await queue.countDone('photos', 'complete-1', 'flushing')).toBe(0);
    expect(await queue.countDone('photos', 'complete-10', 'flushing')).toBe(1);
  });

  it('refuse to read a row that is not theirs', async () => {
    const table = new MemoryStorage().table('jobs');
    await table.createIfMissing();
    await table.insert('photos', 'job_x', { state: 'who knows' });
    await expect(new TableJobQueue(table).get('photos', 'x')).rejects.toMatchObject({ code: 'storage-failed' });
  });
});
