import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseContentHash } from '../../src/hashing/hashes.ts';
import { serializeFileTree } from '../../src/repository/filetree.ts';
import { App, putBlob, sha256 } from './support/app.ts';

/** The function app as it is built, in the local host, over Azurite. */
describe('the function app in the local host', () => {
  const repository = `app-${randomUUID().slice(0, 8)}`;
  const codec = createBodyCodec(undefined);
  let app: App;

  beforeAll(async () => {
    app = await App.start({ connectionString: inject('azuriteConnectionString') });
  }, 60_000);

  afterAll(async () => {
    await app.host.stop();
  });

  it('archives a file through grants, entries and a completed run', async () => {
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

    const file = { kind: 'file', name: 'a.jpg', contentHash: parseContentHash(contentHash), createdTicks: 0n } as const;
    const node = serializeFileTree([{ ...file, modifiedTicks: 0n }]);
    const rootHash = sha256(node);
    expect(await app.put(repository, `filetrees/${rootHash}`, await codec.encode(node))).toBe(201);

    const facts = { rootHash, fileCount: 1, originalSize: content.length };
    const completed = await app.post(`repositories/${repository}/runs/${runId}/complete`, facts);
    expect(completed.status).toBe(202);
    expect(completed.headers.get('retry-after')).toBe('1');
    expect(completed.headers.get('location')).toBe(
      `/api/repositories/${repository}/operations/${completed.body.operationId}`,
    );

    const operation = await app.ended(repository, completed.body.operationId);
    expect(operation.body, app.output.slice(-40).join('\n')).toMatchObject({ state: 'succeeded', error: null });
    expect(operation.body.result).toMatchObject({ snapshotPublished: true, entriesRecorded: 1, shardsWritten: 1 });
    expect(operation.body.result.storageRequests['blob-write']).toBeGreaterThan(0);
    const snapshots = await app.get(`repositories/${repository}/snapshots`);
    expect(snapshots.body.snapshots).toMatchObject([{ rootHash, source: 'nas:/photos', runId }]);
  });

  it('assembles a staged body into its chunk, within storage', async () => {
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
    const accepted = await app.post(commit, facts);
    expect(accepted.status).toBe(202);
    const operation = await app.ended(repository, accepted.body.operationId);
    const entry = {
      contentHash,
      chunkHash: contentHash,
      originalSize: content.length,
      chunkSize: body.length,
      tier: 'cool',
    };
    expect(operation.body, app.output.slice(-40).join('\n')).toMatchObject({ state: 'succeeded', result: { entry } });
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
