import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseContentHash } from '../../src/hashing/hashes.ts';
import { type Azurite, startAzurite } from '../../src/local/azurite.ts';
import { type FileTreeEntry, serializeFileTree } from '../../src/repository/filetree.ts';
import { App, sha256 } from './support/app.ts';

const codec = createBodyCodec(undefined);
let azurite: Azurite;
let stateDirectory: string;

beforeEach(async () => {
  // Of its own: a host takes the jobs of whatever is in its storage, also those of another test that it leaves half done.
  azurite = await startAzurite({ directory: undefined });
  stateDirectory = await mkdtemp(join(tmpdir(), 'arius-crash-'));
});

afterEach(async () => {
  await azurite.stop();
  await rm(stateDirectory, { recursive: true, force: true });
});

/** Members of one tar, recorded; the run is ready to be completed. */
async function readyRun(app: App, repository: string): Promise<{ runId: string; facts: unknown; hashes: string[] }> {
  await app.post('repositories', { name: repository, kind: 'plain' });
  const runId = randomUUID();
  await app.post(`repositories/${repository}/runs`, { runId, source: 'nas:/photos' });
  const tar = await codec.encode(Buffer.from(`tar of ${repository}`));
  const tarHash = sha256(Buffer.from(`tar of ${repository}`));
  const metadata = { arius_type: 'tar', chunk_size: String(tar.length) };
  expect(await app.put(repository, `chunks/${tarHash}`, tar, metadata)).toBe(201);
  const hashes = Array.from({ length: 200 }, (_, index) => sha256(Buffer.from(`${repository} ${index}`)));
  const members = hashes.map((contentHash) => ({ contentHash, originalSize: 10 }));
  const recorded = await app.post(`repositories/${repository}/tars/${tarHash}/members`, { runId, members });
  expect(recorded.body.tar).toEqual({ outcome: 'committed' });
  const node = serializeFileTree(
    hashes.map((hash, index): FileTreeEntry => {
      const name = String(index).padStart(4, '0');
      return { kind: 'file', name, contentHash: parseContentHash(hash), createdTicks: 0n, modifiedTicks: 0n };
    }),
  );
  const rootHash = sha256(node);
  expect(await app.put(repository, `filetrees/${rootHash}`, await codec.encode(node))).toBe(201);
  return { runId, facts: { rootHash, fileCount: hashes.length, originalSize: 2000 }, hashes };
}

describe('the function app, killed while it completes a run', () => {
  it.each(['flushing', 'verifying'])(
    'invariant 5: goes on in the phase %s, or after it, and publishes one snapshot',
    async (phase) => {
      const repository = `crash-${randomUUID().slice(0, 8)}`;
      const { connectionString } = azurite;
      const taskHub = `crash${randomUUID().slice(0, 8)}`;
      const first = await App.start({ connectionString, stateDirectory, settings: { TASK_HUB: taskHub } });
      const { runId, facts, hashes } = await readyRun(first, repository);
      const completed = await first.post(`repositories/${repository}/runs/${runId}/complete`, facts);
      const operation = `repositories/${repository}/operations/${completed.body.operationId}`;
      const order = ['waiting', 'planning', 'flushing', 'settling', 'verifying', 'publishing', 'promoting', 'done'];
      while (order.indexOf((await first.get(operation)).body.phase) < order.indexOf(phase)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await first.host.kill();

      const second = await App.start({ connectionString, stateDirectory, settings: { TASK_HUB: taskHub } });
      try {
        const ended = await second.ended(repository, completed.body.operationId);
        expect(ended.body, second.output.slice(-40).join('\n')).toMatchObject({
          state: 'succeeded',
          result: { snapshotPublished: true },
        });
        const snapshots = await second.get(`repositories/${repository}/snapshots`);
        expect(snapshots.body.snapshots).toHaveLength(1);
        const looked = { hashes, purpose: 'restore' };
        expect((await second.post(`repositories/${repository}/chunks/lookup`, looked)).body.missing).toEqual([]);
      } finally {
        await second.host.stop();
      }
    },
    300_000,
  );
});
