import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ChunkHash, ContentHash } from '../../src/hashing/hashes.ts';
import { DEBRIS_AGE_MS } from '../../src/limits.ts';
import { chunkBlobName, sidecarBlobName } from '../../src/repository/blob-names.ts';
import { formatChunkMetadata } from '../../src/repository/chunk-metadata.ts';
import { Archive } from './support/archive.ts';

async function newRun(
  options: ConstructorParameters<typeof Archive>[0] = {},
): Promise<{ archive: Archive; runId: string }> {
  const archive = await new Archive(options).create();
  return { archive, runId: await archive.startRun() };
}

/** What the metadata of a blob says, the way another client reads it. */
async function metadataOf(archive: Archive, name: string): Promise<Readonly<Record<string, string>> | undefined> {
  return (await archive.container.head(name))?.metadata;
}

/** Puts a chunk of this kind under the name that this text has, whether as a content or as a tar. */
async function occupy(archive: Archive, text: string, kind: 'large' | 'tar' | 'thin' | 'unknown'): Promise<ChunkHash> {
  const hash = archive.hasher.chunkHash(Buffer.from(text));
  const parentChunkHash = archive.hasher.chunkHash(Buffer.from('a lost tar'));
  const metadata = {
    large: formatChunkMetadata({ type: 'large', originalSize: 9, chunkSize: 8 }),
    tar: formatChunkMetadata({ type: 'tar', chunkSize: 8 }),
    thin: formatChunkMetadata({ type: 'thin', parentChunkHash, originalSize: 9, chunkSize: 8 }),
    unknown: { arius_type: 'of-another-version' },
  }[kind];
  await archive.container.write(chunkBlobName(hash), kind === 'thin' ? new Uint8Array() : Buffer.from('the body'), {
    condition: { absent: true },
    contentType: 'application/octet-stream',
    metadata,
  });
  return hash;
}

/** A thin stub of the content `one` that names this tar. */
async function stubIn(archive: Archive, parentChunkHash: ChunkHash): Promise<ContentHash> {
  const contentHash = archive.hashOf('one');
  await archive.container.write(chunkBlobName(contentHash), new Uint8Array(), {
    condition: { absent: true },
    contentType: 'text/plain; charset=utf-8',
    metadata: formatChunkMetadata({ type: 'thin', parentChunkHash, originalSize: 3, chunkSize: 9 }),
  });
  return contentHash;
}

describe('recording large chunks', () => {
  it('AR-04 CS-17: a committed chunk is recorded with the sizes and the tier it is stored with', async () => {
    const { archive, runId } = await newRun({ passphrase: 'correct horse' });
    const contentHash = await archive.uploadLarge('a large file', 'archive');
    const { results } = await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    const head = await archive.container.head(chunkBlobName(contentHash));
    const entry = {
      contentHash,
      chunkHash: contentHash,
      originalSize: 12,
      chunkSize: head?.contentLengthBytes,
      tier: 'archive',
    };
    expect(results).toEqual([{ contentHash, outcome: 'recorded', entry }]);
    expect(await archive.pendingRows()).toBe(1);
  });

  it('AR-10: no pending row before the chunk is committed', async () => {
    const { archive, runId } = await newRun();
    const contentHash = archive.hashOf('not uploaded');
    const { results } = await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    expect(results).toEqual([{ contentHash, outcome: 'absent' }]);
    expect(await archive.pendingRows()).toBe(0);
    await archive.uploadLarge('not uploaded');
    await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    expect(await archive.pendingRows()).toBe(1);
  });

  it('invariant 2: rows are written after every chunk of the call was seen, and none when one look fails', async () => {
    const { archive, runId } = await newRun();
    const hashes = [await archive.uploadLarge('one'), await archive.uploadLarge('two')];
    const order: string[] = [];
    archive.memory.onRequest = ({ phase, kind, container }) => {
      if (phase === 'before' && (kind === 'blob-head' || container === 'pending')) {
        order.push(kind);
        if (kind === 'blob-head' && order.length === 2) {
          throw new Error('the look fails');
        }
      }
    };
    const request = { runId, contentHashes: hashes };
    await expect(archive.service.recording.entries('photos', request)).rejects.toThrow('the look fails');
    expect(order.filter((kind) => kind.startsWith('row'))).toEqual([]);
    order.splice(0, order.length, 'x', 'x');
    await archive.service.recording.entries('photos', request);
    expect(order.slice(2).lastIndexOf('blob-head')).toBeLessThan(
      order.slice(2).findIndex((kind) => kind.startsWith('row')),
    );
  });

  it('AR-08 CS-18: debris is removed once it is old, with the ETag it was seen under, and then may be uploaded', async () => {
    const { archive, runId } = await newRun();
    const contentHash = archive.hashOf('a large file');
    await archive.uploadDebris(contentHash);
    const request = { runId, contentHashes: [contentHash] };
    const young = await archive.service.recording.entries('photos', request);
    const retryAt = new Date(archive.clock.now().getTime() + DEBRIS_AGE_MS).toISOString();
    expect(young.results).toEqual([{ contentHash, outcome: 'debris', retryAt }]);
    expect(await archive.names('chunks/')).toHaveLength(1);
    archive.clock.advance(DEBRIS_AGE_MS);
    const old = await archive.service.recording.entries('photos', request);
    expect(old.results).toEqual([{ contentHash, outcome: 'absent' }]);
    expect(await archive.names('chunks/')).toEqual([]);
    expect(await archive.pendingRows()).toBe(0);
    await archive.uploadLarge('a large file');
    expect((await archive.service.recording.entries('photos', request)).results).toMatchObject([
      { outcome: 'recorded' },
    ]);
  });

  it('invariant 6: debris that becomes a chunk between look and removal is kept', async () => {
    const { archive, runId } = await newRun();
    const contentHash = archive.hashOf('a large file');
    await archive.uploadDebris(contentHash);
    archive.clock.advance(DEBRIS_AGE_MS);
    let intervened = false;
    archive.memory.onRequest = async ({ phase, kind, name }) => {
      if (phase === 'before' && kind === 'blob-delete' && name === chunkBlobName(contentHash) && !intervened) {
        intervened = true;
        const debris = await archive.container.head(chunkBlobName(contentHash));
        await archive.container.write(chunkBlobName(contentHash), Buffer.from('the body'), {
          condition: { etag: debris?.etag ?? '' },
          contentType: 'application/zstd',
          metadata: formatChunkMetadata({ type: 'large', originalSize: 12, chunkSize: 8 }),
        });
      }
    };
    const { results } = await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    expect(intervened).toBe(true);
    expect(results).toMatchObject([{ outcome: 'recorded', entry: { chunkSize: 8 } }]);
  });

  it('invariant 6: a migrated chunk with a sidecar is committed, however old, and takes its tier from itself', async () => {
    const { archive, runId } = await newRun();
    const contentHash = archive.hashOf('a migrated file');
    await archive.uploadDebris(contentHash);
    await archive.container.write(sidecarBlobName(contentHash), new Uint8Array(), {
      condition: { absent: true },
      contentType: 'text/plain; charset=utf-8',
      metadata: formatChunkMetadata({ type: 'large', originalSize: 15, chunkSize: 11 }),
      tier: 'hot',
    });
    archive.clock.advance(10 * DEBRIS_AGE_MS);
    const { results } = await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    expect(results).toMatchObject([{ outcome: 'recorded', entry: { originalSize: 15, chunkSize: 11, tier: 'cold' } }]);
    expect(await archive.names('chunks/')).toHaveLength(1);
  });

  it('a large chunk that is really in a tar is recorded as what it is', async () => {
    const { archive, runId } = await newRun();
    const tarHash = await archive.uploadTar('a tar');
    const contentHash = archive.hashOf('a member');
    await archive.service.recording.members('photos', tarHash, { runId, members: [{ contentHash, originalSize: 8 }] });
    const { results } = await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] });
    expect(results).toMatchObject([{ outcome: 'recorded', entry: { chunkHash: tarHash, originalSize: 8 } }]);
  });

  it.each(['tar', 'unknown'] as const)('%s under the name of a content is a conflict for that alone', async (kind) => {
    const { archive, runId } = await newRun();
    const taken = await occupy(archive, 'a tar', kind);
    const fine = await archive.uploadLarge('a large file');
    const request = { runId, contentHashes: [taken as string, fine as string] };
    const { results } = await archive.service.recording.entries('photos', request);
    expect(results).toMatchObject([
      { contentHash: taken, outcome: 'conflict', detail: expect.stringContaining(chunkBlobName(taken)) },
      { contentHash: fine, outcome: 'recorded' },
    ]);
    expect(await archive.names('chunks/')).toHaveLength(2);
    expect(await archive.pendingRows()).toBe(1);
  });

  it('needs a run that was started', async () => {
    const { archive } = await newRun();
    const request = { runId: randomUUID(), contentHashes: ['ab'.repeat(32)] };
    await expect(archive.service.recording.entries('photos', request)).rejects.toMatchObject({ code: 'run-not-found' });
  });
});

describe('recording members of a tar', () => {
  it('CS-24 AR-11: thin stubs are empty Cool blobs that name their tar, and rows come after them', async () => {
    const { archive, runId } = await newRun({ passphrase: 'correct horse' });
    const tarHash = await archive.uploadTar('a tar', 'cold');
    const members = ['one', 'three'].map((text) => ({
      contentHash: archive.hashOf(text) as string,
      originalSize: text.length,
    }));
    const order: string[] = [];
    archive.memory.onRequest = ({ phase, kind, container }) => {
      if (phase === 'after' && (kind === 'blob-write' || container === 'pending')) {
        order.push(kind);
      }
    };
    const answer = await archive.service.recording.members('photos', tarHash, { runId, members });
    archive.memory.onRequest = undefined;
    expect(answer.tar).toEqual({ outcome: 'committed' });
    expect(answer.results.map((result) => result.outcome)).toEqual(['recorded', 'recorded']);
    expect(order.slice(0, 2)).toEqual(['blob-write', 'blob-write']);
    const tar = await archive.container.head(chunkBlobName(tarHash));
    const stub = await archive.container.head(chunkBlobName(archive.hashOf('three')));
    expect(stub).toMatchObject({ contentLengthBytes: 0, tier: 'cool', contentType: 'text/plain; charset=utf-8' });
    expect(stub?.metadata).toEqual({
      arius_type: 'thin',
      parent_chunk_hash: tarHash,
      original_size: '5',
      chunk_size: String(tar?.contentLengthBytes),
    });
    expect(answer.results[1]?.entry).toMatchObject({ chunkHash: tarHash, originalSize: 5, tier: 'cold' });
    expect(await archive.pendingRows()).toBe(2);
  });

  it('CS-25: a committed stub is kept, and the entry names the tar that it names', async () => {
    const { archive, runId } = await newRun();
    const oldTar = await archive.uploadTar('the old tar');
    const newTar = await archive.uploadTar('a newer tar');
    const members = [{ contentHash: archive.hashOf('one') as string, originalSize: 3 }];
    await archive.service.recording.members('photos', oldTar, { runId, members });
    const before = await metadataOf(archive, chunkBlobName(archive.hashOf('one')));
    const again = await archive.service.recording.members('photos', newTar, { runId, members });
    expect(again.results).toMatchObject([{ outcome: 'recorded', entry: { chunkHash: oldTar } }]);
    expect(await metadataOf(archive, chunkBlobName(archive.hashOf('one')))).toEqual(before);
    const twice = await archive.service.recording.members('photos', oldTar, { runId, members });
    expect(twice.results).toEqual(again.results);
  });

  it('CS-26: a stub without sentinel is removed when it is old and written again; a young one waits', async () => {
    const { archive, runId } = await newRun();
    const tarHash = await archive.uploadTar('a tar');
    const contentHash = archive.hashOf('one');
    await archive.uploadDebris(contentHash);
    const members = [
      { contentHash: contentHash as string, originalSize: 3 },
      { contentHash: archive.hashOf('two') as string, originalSize: 3 },
    ];
    const young = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(young.results.map((result) => result.outcome)).toEqual(['debris', 'recorded']);
    archive.clock.advance(DEBRIS_AGE_MS);
    const old = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(old.results.map((result) => result.outcome)).toEqual(['recorded', 'recorded']);
    expect(await metadataOf(archive, chunkBlobName(contentHash))).toMatchObject({ arius_type: 'thin' });
  });

  it('a stub whose tar is not there is replaced: nothing could be read through it', async () => {
    const { archive, runId } = await newRun();
    const contentHash = await stubIn(archive, archive.hasher.chunkHash(Buffer.from('lost tar')));
    const tarHash = await archive.uploadTar('a tar');
    const members = [{ contentHash: contentHash as string, originalSize: 3 }];
    const { results } = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(results).toMatchObject([{ outcome: 'recorded', entry: { chunkHash: tarHash } }]);
    expect(await metadataOf(archive, chunkBlobName(contentHash))).toMatchObject({ parent_chunk_hash: tarHash });
  });

  it.each(['tar', 'unknown'] as const)('%s under the name of a member is a conflict for that alone', async (kind) => {
    const { archive, runId } = await newRun();
    const taken = await occupy(archive, 'the bytes of a tar', kind);
    const before = await metadataOf(archive, chunkBlobName(taken));
    const tarHash = await archive.uploadTar('a tar');
    const members = [
      { contentHash: taken as string, originalSize: 18 },
      { contentHash: archive.hashOf('one') as string, originalSize: 3 },
    ];
    const answer = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(answer).toMatchObject({
      tar: { outcome: 'committed' },
      results: [
        { contentHash: taken, outcome: 'conflict', detail: expect.stringContaining(chunkBlobName(taken)) },
        { contentHash: archive.hashOf('one'), outcome: 'recorded' },
      ],
    });
    expect(await metadataOf(archive, chunkBlobName(taken))).toEqual(before);
    expect(await archive.pendingRows()).toBe(1);
  });

  it.each(['large', 'thin', 'unknown'] as const)(
    '%s under the name of the tar is a conflict, and no member is touched',
    async (kind) => {
      const { archive, runId } = await newRun();
      const tarHash = await occupy(archive, 'the bytes of a tar', kind);
      const members = [{ contentHash: archive.hashOf('one') as string, originalSize: 3 }];
      const answer = await archive.service.recording.members('photos', tarHash, { runId, members });
      const detail = expect.stringContaining(chunkBlobName(tarHash)) as string;
      expect(answer).toEqual({ tar: { outcome: 'conflict', detail }, results: [] });
      expect(await archive.names('chunks/')).toHaveLength(1);
      expect(await archive.pendingRows()).toBe(0);
    },
  );

  it('AR-02 CS-16: touches no member before the tar is committed, and finds a committed tar again', async () => {
    const { archive, runId } = await newRun();
    const tarHash = archive.hasher.chunkHash(Buffer.from('a tar'));
    const members = [{ contentHash: archive.hashOf('one') as string, originalSize: 3 }];
    const absent = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(absent).toEqual({ tar: { outcome: 'absent' }, results: [] });
    await archive.uploadDebris(tarHash);
    const debris = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(debris).toMatchObject({ tar: { outcome: 'debris' }, results: [] });
    expect(await archive.names('chunks/')).toHaveLength(1);
    archive.clock.advance(DEBRIS_AGE_MS);
    const cleared = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(cleared).toEqual({ tar: { outcome: 'absent' }, results: [] });
    await archive.uploadTar('a tar');
    const committed = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(committed).toMatchObject({ tar: { outcome: 'committed' }, results: [{ outcome: 'recorded' }] });
    expect(await archive.pendingRows()).toBe(1);
  });

  it('AR-05: a tar that another run committed, in whatever tier, is taken as it is', async () => {
    const { archive } = await newRun();
    const tarHash = await archive.uploadTar('a tar', 'archive');
    const members = [{ contentHash: archive.hashOf('one') as string, originalSize: 3 }];
    const runId = await archive.startRun();
    const { tar, results } = await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(tar).toEqual({ outcome: 'committed' });
    expect(results).toMatchObject([{ outcome: 'recorded', entry: { chunkHash: tarHash, tier: 'archive' } }]);
    expect(await archive.names('chunks/')).toHaveLength(2);
  });

  it('AR-11: a stub that cannot be written leaves no row behind', async () => {
    const { archive, runId } = await newRun();
    const tarHash = await archive.uploadTar('a tar');
    const members = ['one', 'two'].map((text) => ({ contentHash: archive.hashOf(text) as string, originalSize: 3 }));
    archive.memory.onRequest = ({ phase, kind, name }) => {
      if (phase === 'before' && kind === 'blob-write' && name === chunkBlobName(archive.hashOf('two'))) {
        throw new Error('crash');
      }
    };
    await expect(archive.service.recording.members('photos', tarHash, { runId, members })).rejects.toThrow('crash');
    archive.memory.onRequest = undefined;
    expect(await archive.pendingRows()).toBe(0);
    await archive.service.recording.members('photos', tarHash, { runId, members });
    expect(await archive.pendingRows()).toBe(2);
  });
});

describe('a thin stub whose tar is not committed', () => {
  const asLarge = async (archive: Archive, runId: string, contentHash: ContentHash) =>
    (await archive.service.recording.entries('photos', { runId, contentHashes: [contentHash] })).results;
  const asMember = async (archive: Archive, runId: string, contentHash: ContentHash) => {
    const members = [{ contentHash, originalSize: 3 }];
    const tarHash = await archive.uploadTar('another tar');
    return (await archive.service.recording.members('photos', tarHash, { runId, members })).results;
  };
  const callers = [
    { caller: 'entries', record: asLarge, freed: 'absent' },
    { caller: 'members', record: asMember, freed: 'recorded' },
  ];

  it.each(callers.flatMap((call) => (['large', 'thin', 'unknown'] as const).map((kind) => ({ ...call, kind }))))(
    'invariant 6: $caller keeps it, as a conflict, while $kind has the name of its tar',
    async ({ record, kind }) => {
      const { archive, runId } = await newRun();
      const parent = await occupy(archive, 'its tar', kind);
      const contentHash = await stubIn(archive, parent);
      archive.clock.advance(10 * DEBRIS_AGE_MS);
      expect(await record(archive, runId, contentHash)).toEqual([
        { contentHash, outcome: 'conflict', detail: expect.stringContaining(chunkBlobName(parent)) as string },
      ]);
      expect(await metadataOf(archive, chunkBlobName(contentHash))).toMatchObject({ parent_chunk_hash: parent });
      expect(await archive.pendingRows()).toBe(0);
    },
  );

  it.each(callers)('invariant 6: $caller keeps it while its tar may still be committed', async ({ record, freed }) => {
    const { archive, runId } = await newRun();
    const parent = archive.hasher.chunkHash(Buffer.from('its tar'));
    await archive.uploadDebris(parent);
    const contentHash = await stubIn(archive, parent);
    const retryAt = new Date(archive.clock.now().getTime() + DEBRIS_AGE_MS).toISOString();
    expect(await record(archive, runId, contentHash)).toEqual([{ contentHash, outcome: 'debris', retryAt }]);
    expect(await metadataOf(archive, chunkBlobName(contentHash))).toMatchObject({ parent_chunk_hash: parent });
    expect(await archive.pendingRows()).toBe(0);
    archive.clock.advance(DEBRIS_AGE_MS);
    expect(await record(archive, runId, contentHash)).toMatchObject([{ contentHash, outcome: freed }]);
    expect((await metadataOf(archive, chunkBlobName(contentHash)))?.parent_chunk_hash).not.toBe(parent);
  });
});
