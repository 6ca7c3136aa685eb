import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseContentHash } from '../../src/hashing/hashes.ts';
import { type Azurite, startAzurite } from '../../src/local/azurite.ts';
import { serializeFileTree } from '../../src/repository/filetree.ts';
import type { RestartingHost } from '../support/restarting-host.ts';
import { type Answer, App, putBlob, sha256 } from './support/app.ts';

interface Circumstances {
  readonly settings?: Readonly<Record<string, string>>;
  /** Kills the host at each so many commits: at least twice in every operation, the shortest of which makes ten. */
  readonly commitsPerLife?: number;
}

/** What the platform does to an app: nothing, or what it may do at any time. */
const CIRCUMSTANCES: [string, Circumstances][] = [
  ['undisturbed', {}],
  [
    'with activities run twice and racing starts',
    { settings: { LOCAL_HOST_DUPLICATE_ACTIVITIES: '0.3', LOCAL_HOST_RACY_STARTS_MS: '2000' } },
  ],
  [
    'with activities run again late and messages held back',
    {
      settings: {
        LOCAL_HOST_DUPLICATE_ACTIVITIES: '0.3',
        LOCAL_HOST_DUPLICATE_DELAY_MS: '300',
        LOCAL_HOST_DELAY_MESSAGES: '0.2:100',
      },
    },
  ],
  ['killed in the middle of every operation', { commitsPerLife: 5 }],
];

/** A flush that is killed leaves its root to the next one only when its claim has run out: after 40 s, in each of some. */
const DISTURBED = { timeout: 240_000 };

/** The function app as it is built, in the local host, over Azurite. */
describe.each(CIRCUMSTANCES)('the function app in the local host, %s,', (_, { settings = {}, commitsPerLife }) => {
  const repository = `app-${randomUUID().slice(0, 8)}`;
  const codec = createBodyCodec(undefined);
  const isDisturbed = Object.keys(settings).length > 0 || commitsPerLife !== undefined;
  let azurite: Azurite;
  let stateDirectory: string;
  let app: App<RestartingHost>;

  beforeAll(async () => {
    // Of its own: a host takes the jobs of whatever is in its storage, also those of another test that it leaves half done.
    azurite = await startAzurite({ directory: undefined });
    stateDirectory = await mkdtemp(join(tmpdir(), 'arius-app-'));
    // Never reached by the commits of a test: such a host lives once.
    const lives = { commitsPerLife: commitsPerLife ?? Number.MAX_SAFE_INTEGER };
    app = await App.startRestarting({
      connectionString: azurite.connectionString,
      settings: { TASK_HUB: `test${randomUUID().slice(0, 8)}`, ...settings },
      stateDirectory,
      ...lives,
    });
  }, 60_000);

  afterAll(async () => {
    await app.host.stop();
    await azurite.stop();
    await rm(stateDirectory, { recursive: true, force: true });
  });

  /** Whatever happened to the host meanwhile; and it did happen. */
  async function ended(operationId: string, restartsBefore: number): Promise<Answer> {
    const operation = await app.ended(repository, operationId);
    expect(operation.body, app.output.slice(-40).join('\n')).toMatchObject({ state: 'succeeded', error: null });
    if (commitsPerLife !== undefined) expect(app.host.restarts()).toBeGreaterThan(restartsBefore);
    return operation;
  }

  it('archives a file through grants, entries and a completed run', DISTURBED, async () => {
    const created = await app.post('repositories', { name: repository, kind: 'plain' });
    expect(created.status, JSON.stringify(created.body)).toBe(201);
    const runId = randomUUID();
    const started = await app.post(`repositories/${repository}/runs`, { runId, source: 'nas:/photos' });
    expect(started.body).toMatchObject({ state: 'started', newestSnapshot: null });

    const content = Buffer.from('the content of one file');
    const contentHash = sha256(content);
    const looked = await app.post(`repositories/${repository}/chunks/lookup`, { hashes: [contentHash], runId });
    expect(looked.body).toEqual({ known: [], missing: [contentHash] });

    const body = await codec.encode(content);
    const metadata = { arius_type: 'large', original_size: String(content.length), chunk_size: String(body.length) };
    expect(await app.put(repository, `chunks/${contentHash}`, body, metadata)).toBe(201);
    expect([403, 409, 412]).toContain(await app.put(repository, `chunks/${contentHash}`, body, metadata));
    const recorded = await app.post(`repositories/${repository}/entries`, { runId, contentHashes: [contentHash] });
    expect(recorded.body.results).toMatchObject([{ outcome: 'recorded' }]);

    const file = {
      kind: 'file',
      name: 'a.jpg',
      contentHash: parseContentHash(contentHash),
      createdTicks: 0n,
    } as const;
    const node = serializeFileTree([{ ...file, modifiedTicks: 0n }]);
    const rootHash = sha256(node);
    expect(await app.put(repository, `filetrees/${rootHash}`, await codec.encode(node))).toBe(201);

    const facts = { rootHash, fileCount: 1, originalSize: content.length };
    const restarts = app.host.restarts();
    const completed = await app.post(`repositories/${repository}/runs/${runId}/complete`, facts);
    expect(completed.status).toBe(202);
    expect(completed.headers.get('retry-after')).toBe('1');
    expect(completed.headers.get('location')).toBe(
      `/api/repositories/${repository}/operations/${completed.body.operationId}`,
    );

    const operation = await ended(completed.body.operationId, restarts);
    expect(operation.body.result).toMatchObject({ snapshotPublished: true });
    // The second run of an activity finds nothing left to do, and its answer may be the one that counts.
    if (!isDisturbed) expect(operation.body.result).toMatchObject({ entriesRecorded: 1, shardsWritten: 1 });
    expect(operation.body.result.storageRequests['blob-write']).toBeGreaterThan(0);
    const snapshots = await app.get(`repositories/${repository}/snapshots`);
    expect(snapshots.body.snapshots).toMatchObject([{ rootHash, source: 'nas:/photos', runId }]);
    const asked = { hashes: [contentHash], purpose: 'restore' };
    expect((await app.post(`repositories/${repository}/chunks/lookup`, asked)).body.missing).toEqual([]);
  });

  it('assembles a staged body into its chunk, within storage', DISTURBED, async () => {
    const runId = randomUUID();
    await app.post(`repositories/${repository}/runs`, { runId, source: 'nas:/videos' });
    const content = Buffer.alloc(100_000, 'a very large file ');
    const contentHash = sha256(content);
    const asked = { contentHash, runId };
    const granted = await app.post(`repositories/${repository}/staging-grants`, asked);
    expect(granted.body).toMatchObject({ outcome: 'granted' });
    const body = await codec.encode(content);
    expect(await putBlob(granted.body.url, body, {})).toBe(201);
    const { stagingName } = granted.body;
    const facts = { runId, stagingName, originalSize: content.length, chunkSize: body.length };
    const commit = `repositories/${repository}/chunks/${contentHash}/commit`;
    const restarts = app.host.restarts();
    const accepted = await app.post(commit, facts);
    expect(accepted.status).toBe(202);
    const operation = await ended(accepted.body.operationId, restarts);
    const entry = {
      contentHash,
      chunkHash: contentHash,
      originalSize: content.length,
      chunkSize: body.length,
      tier: 'cool',
    };
    expect(operation.body.result).toMatchObject({ entry });
    expect((await app.post(commit, facts)).body.state).toBe('succeeded');
    const again = await app.post(`repositories/${repository}/staging-grants`, asked);
    expect(again.body).toMatchObject({ outcome: 'exists', entry });
    const read = await app.post(`repositories/${repository}/grants`, {
      purpose: 'read',
      names: [`chunks/${contentHash}`],
    });
    const stored = Buffer.from(await (await fetch(read.body.grants[0].url)).arrayBuffer());
    expect(Buffer.from(await codec.decode(stored, content.length)).equals(content)).toBe(true);
  });

  it('answers with problems, and asks for a key', async () => {
    const missing = await app.get('repositories/not-there');
    expect(missing.status).toBe(404);
    expect(missing.headers.get('content-type')).toContain('application/problem+json');
    expect(missing.body).toMatchObject({ code: 'repository-not-found', status: 404 });
    expect((await app.request('GET', 'repositories', undefined, 'wrong')).status).toBe(401);
    expect((await app.request('GET', 'health', undefined, '')).body).toMatchObject({ status: 'ok' });
    expect((await app.get('openapi.json')).body.openapi).toBe('3.1.0');
  });
});
