/** The index on real requests: signatures that expire, block lists, table batches and listings of the emulator. */

import { randomUUID } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import { ChunkIndex, type IndexVersion } from '../../src/chunk-index/chunk-index.ts';
import { type ManifestSection, ManifestWriter } from '../../src/chunk-index/manifest.ts';
import { openManifest } from '../../src/chunk-index/manifest-reader.ts';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { ROOT_CLAIM_DURATION_MS } from '../../src/limits.ts';
import { PendingEntries } from '../../src/pending/pending-entries.ts';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';
import type { BlobContainer, Clock } from '../../src/storage/ports.ts';
import { entries, hash, hashesOf } from './world.ts';

const SYSTEM_CLOCK: Clock = { now: () => new Date() };

interface Service {
  readonly container: BlobContainer;
  readonly staging: BlobContainer;
  readonly pending: PendingEntries;
  version: IndexVersion;
  index(clock?: Clock): ChunkIndex;
}

async function service(): Promise<Service> {
  const storage = azureStorage({ connectionString: inject('azuriteConnectionString') });
  const repository = `index-${randomUUID().slice(0, 8)}`;
  const container = storage.container(repository);
  const staging = storage.container(`${repository}-staging`);
  const table = storage.table(repository.replaceAll('-', ''));
  await Promise.all([container.createIfMissing(), staging.createIfMissing(), table.createIfMissing()]);
  const pending = new PendingEntries({ table, repository, clock: SYSTEM_CLOCK });
  const codec = createBodyCodec(new Passphrase('correct horse'));
  const made: Service = {
    container,
    staging,
    pending,
    version: { epoch: null, layoutVersion: 0 },
    index: (clock = SYSTEM_CLOCK) =>
      new ChunkIndex({
        repository,
        container,
        staging,
        pending,
        codec,
        clock,
        random: Math.random,
        maxShardEntryCount: 8,
        versions: { read: async () => made.version },
      }),
  };
  return made;
}

async function complete(made: Service, jobId: string): Promise<void> {
  const job = { jobId, owner: 'test' };
  const index = made.index();
  const roots = await index.rootsToFlush();
  for (const root of roots) {
    await index.flushRoot(root, job);
  }
  made.version = { ...made.version, layoutVersion: made.version.layoutVersion + 1 };
  for (const root of roots) {
    expect(await index.settleRoot(root, job)).toMatchObject({ remaining: 0, flushAgain: false });
  }
}

describe('the index on the emulator', () => {
  it('flushes, splits, settles and finds everything from a cold instance, sealed', async () => {
    const made = await service();
    const first = [...entries(6, 'aa'), ...entries(3, 'b0')];
    await made.pending.record(first);
    await complete(made, 'first');
    const second = [...entries(40, 'aa1', 50), ...entries(110, 'cc')];
    await made.pending.record(second);
    await complete(made, 'second');
    const found = await made.index().lookup([...hashesOf([...first, ...second]), hash(999)]);
    expect(found).toEqual(new Map([...first, ...second].map((entry) => [entry.contentHash, entry])));
    expect(await made.pending.census()).toEqual({ rows: 0, oldest: undefined });
    expect(await made.container.head('chunk-index/aa')).toBeUndefined();
    expect(await made.index().rootsToFlush()).toEqual([]);
  });

  it('invariant 5: storage itself, by its own clock, refuses the writes of a claim past its deadline', async () => {
    const made = await service();
    await made.pending.record(entries(3, 'aa'));
    // A holder that sleeps between claiming and writing, seen from storage: its deadline lies behind.
    const asleep: Clock = { now: () => new Date(Date.now() - 2 * ROOT_CLAIM_DURATION_MS) };
    await expect(made.index(asleep).flushRoot('aa', { jobId: 'late', owner: 'test' })).rejects.toMatchObject({
      code: 'not-allowed',
    });
    expect((await made.container.listPage('chunk-index/')).blobs).toEqual([]);
    expect((await made.pending.census()).rows).toBe(3);
  });

  it('manifests go in blocks and come back in others', async () => {
    const made = await service();
    const sections = [1, 2, 3].map(
      (n): ManifestSection => ({
        prefix: `aa${n}`,
        etag: `0x8D${n}`,
        rows: entries(40, `aa${n}`).map((entry) => ({ contentHash: entry.contentHash, etag: `W/"datetime'${n}'"` })),
      }),
    );
    const staging = await made.staging.expiringAt(new Date(Date.now() + 60_000));
    for (const blockBytes of [1_000, 100_000, 2_000]) {
      const writer = new ManifestWriter('a/b/manifests/aa', 'aa', (request) => request(staging), blockBytes);
      for (const section of sections) {
        await writer.add(section);
      }
      expect(await writer.commit()).toMatchObject({ outcome: 'written' });
      const read: ManifestSection[] = [];
      for await (const section of (await openManifest(made.staging, 'a/b/manifests/aa', 'aa', 777)) ?? []) {
        read.push(section);
      }
      expect(read).toEqual(sections);
    }
  });
});
