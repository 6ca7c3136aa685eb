import { describe, expect, it } from 'vitest';
import type { ContentHash } from '../../src/hashing/hashes.ts';
import { ORCHESTRATION_CHILDREN_MAX, STAGED_BLOCK_BYTES } from '../../src/limits.ts';
import { chunkBlobName } from '../../src/repository/blob-names.ts';
import { Archive } from '../service/support/archive.ts';
import { Engine, EngineStopped } from './support/engine.ts';

interface Staged {
  readonly archive: Archive;
  readonly runId: string;
  readonly contentHash: ContentHash;
  readonly stagingName: string;
  readonly body: Buffer;
}

/** A body in staging, as an agent leaves it. What it decodes to is the agent's to prove. */
async function staged(bodyBytes = 1000): Promise<Staged> {
  const archive = await new Archive().create();
  const runId = await archive.startRun();
  const contentHash = archive.hashOf('gigabytes');
  const granted = await archive.service.grants.grantStaging('photos', { contentHash, runId });
  if (granted.outcome !== 'granted') {
    throw new Error('Nothing was granted');
  }
  const body = Buffer.alloc(bodyBytes, 'block');
  await archive.staging.write(granted.stagingName, body, { condition: { absent: true }, contentType: 'x' });
  return { archive, runId, contentHash, stagingName: granted.stagingName, body };
}

async function request(each: Staged, changes: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const { runId, stagingName, body } = each;
  const facts = { runId, stagingName, originalSize: 9, chunkSize: body.length, ...changes };
  return (await each.archive.service.assembly.request('photos', each.contentHash, facts)).operationId;
}

async function run(each: Staged, engine = new Engine(each.archive.newService(), each.archive.clock)): Promise<Engine> {
  const { commits } = await each.archive.service.housekeeping.waitingWork('photos');
  for (const operationId of commits) {
    await engine.run('commitChunk', { repository: 'photos', operationId }, `photos:${operationId}`);
  }
  return engine;
}

describe('assembling a large chunk', () => {
  it('CS-13: commits body, metadata and tier at once, records the entry, and drops the staged body', async () => {
    const each = await staged(STAGED_BLOCK_BYTES + 1000);
    const { archive, contentHash, body } = each;
    const operationId = await request(each);
    const engine = await run(each);
    expect(await archive.service.operations.get('photos', operationId)).toMatchObject({
      state: 'succeeded',
      result: { entry: { contentHash, originalSize: 9, chunkSize: body.length, tier: 'cool' } },
    });
    expect(engine.calls.filter((call) => call.name === 'copyBlock')).toHaveLength(2);
    const head = await archive.container.head(chunkBlobName(contentHash));
    expect(head).toMatchObject({ contentLengthBytes: body.length, tier: 'cool', contentType: 'application/zstd' });
    expect(head?.metadata).toEqual({
      arius_type: 'large',
      original_size: '9',
      chunk_size: String(body.length),
    });
    expect((await archive.bodyOf(chunkBlobName(contentHash))).equals(body)).toBe(true);
    expect(await archive.pendingRows()).toBe(1);
    expect(await archive.staging.head(each.stagingName)).toBeUndefined();
  });

  it('is idempotent, and refuses other sizes for the same chunk', async () => {
    const each = await staged();
    const operationId = await request(each);
    expect(await request(each)).toBe(operationId);
    await expect(request(each, { originalSize: 10 })).rejects.toMatchObject({ code: 'run-conflict' });
    await run(each);
    expect(await request(each)).toBe(operationId);
    expect(await each.archive.service.operations.get('photos', operationId)).toMatchObject({ state: 'succeeded' });
  });

  it('invariant 8: takes only the staging name that was granted for this run and content', async () => {
    const each = await staged();
    for (const stagingName of ['photos/complete-x/1/flush-0', each.stagingName.replace('photos', 'others')]) {
      await expect(request(each, { stagingName })).rejects.toMatchObject({ code: 'bad-request' });
    }
  });

  it('commits nothing when the staged body is not there, or has another size', async () => {
    const each = await staged();
    const operationId = await request(each, { chunkSize: 999 });
    await run(each);
    const { archive } = each;
    expect(await archive.service.operations.get('photos', operationId)).toMatchObject({
      state: 'failed',
      error: { code: 'bad-request' },
    });
    expect(await archive.names('chunks/')).toEqual([]);
    expect(await archive.pendingRows()).toBe(0);
  });

  it('invariant 6: a body that was staged anew while it was copied is not committed', async () => {
    const each = await staged();
    const operationId = await request(each);
    const engine = new Engine(each.archive.newService(), each.archive.clock);
    engine.beforeStep = async ({ name }) => {
      if (name === 'commitAssembly') {
        const before = await each.archive.staging.head(each.stagingName);
        const condition = { etag: before?.etag ?? '' };
        await each.archive.staging.write(each.stagingName, Buffer.alloc(1000, 'other'), {
          condition,
          contentType: 'x',
        });
      }
    };
    await run(each, engine);
    expect(await each.archive.service.operations.get('photos', operationId)).toMatchObject({ error: { code: 'busy' } });
    expect(await each.archive.names('chunks/')).toEqual([]);
    // Asked again, it goes over the new body.
    expect(await request(each)).toBe(operationId);
    await run(each);
    expect(await each.archive.service.operations.get('photos', operationId)).toMatchObject({ state: 'succeeded' });
  });

  it('CS-19: a chunk that another writer committed meanwhile is kept', async () => {
    const each = await staged();
    const operationId = await request(each);
    const engine = new Engine(each.archive.newService(), each.archive.clock);
    engine.beforeStep = async ({ name }) => {
      if (name === 'commitAssembly') {
        await each.archive.uploadLarge('gigabytes');
      }
    };
    await run(each, engine);
    const operation = await each.archive.service.operations.get('photos', operationId);
    expect(operation).toMatchObject({ state: 'succeeded' });
    const stored = await each.archive.container.head(chunkBlobName(each.contentHash));
    expect(operation.result).toMatchObject({ entry: { chunkSize: stored?.contentLengthBytes } });
  });

  it.each(['planAssembly', 'commitAssembly'])(
    'fails when another kind of chunk has the name at %s, and keeps it',
    async (step) => {
      const each = await staged();
      const operationId = await request(each);
      const engine = new Engine(each.archive.newService(), each.archive.clock);
      let taken = false;
      engine.beforeStep = async ({ name }) => {
        if (name === step && !taken) {
          taken = true;
          await each.archive.uploadTar('gigabytes');
        }
      };
      await run(each, engine);
      expect(taken).toBe(true);
      expect(await each.archive.service.operations.get('photos', operationId)).toMatchObject({
        state: 'failed',
        error: { code: 'chunk-type-conflict' },
      });
      const stored = await each.archive.container.head(chunkBlobName(each.contentHash));
      expect(stored?.metadata).toMatchObject({ arius_type: 'tar' });
      expect(await each.archive.pendingRows()).toBe(0);
    },
  );

  it('invariant 5: a crash before or after any step, and every step twice, come to the same', async () => {
    const reference = await staged();
    await request(reference);
    const steps = (await run(reference)).calls.length;
    expect(steps).toBeGreaterThan(4);
    for (let crashAt = 0; crashAt < steps; crashAt++) {
      for (const moment of ['beforeStep', 'afterStep'] as const) {
        const each = await staged();
        const operationId = await request(each);
        const engine = new Engine(each.archive.newService(), each.archive.clock);
        let calls = 0;
        engine[moment] = () => {
          if (calls++ === crashAt) {
            throw new EngineStopped('crash');
          }
        };
        await expect(run(each, engine)).rejects.toThrow('crash');
        each.archive.clock.advance(10 * 60_000);
        const again = new Engine(each.archive.newService(), each.archive.clock);
        again.runTwice = () => true;
        await run(each, again);
        const operation = await each.archive.service.operations.get('photos', operationId);
        expect(operation, `${moment} ${crashAt}`).toMatchObject({ state: 'succeeded' });
        expect(await each.archive.pendingRows()).toBe(1);
      }
    }
  });

  it('copies any number of blocks with at most 16 children each', async () => {
    const archive = await new Archive().create();
    const engine = new Engine(archive.service, archive.clock);
    const blocks = 700;
    const copied: number[] = [];
    // Seven hundred blocks are 45 GB; here their numbers are enough.
    engine.answers.set('copyBlock', (input) => {
      copied.push(Number(input.index));
      return { ok: true, value: null, requests: {} };
    });
    const job = { repository: 'photos', operationId: 'commit-x', attempt: 1 };
    expect(await engine.run('copyBlocks', { job, from: 0, to: blocks }, 'copy')).toEqual({ failure: null });
    expect([...copied].sort((a, b) => a - b)).toEqual(Array.from({ length: blocks }, (_, index) => index));
    expect(Math.max(...engine.childrenMax.map((each) => each.children))).toBeLessThanOrEqual(
      ORCHESTRATION_CHILDREN_MAX,
    );
  });
});
