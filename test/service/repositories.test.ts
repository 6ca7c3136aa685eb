import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseFileTreeHash } from '../../src/hashing/hashes.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { filetreeBlobName, snapshotBlobName } from '../../src/repository/blob-names.ts';
import { serializeSnapshot, snapshotNameOf } from '../../src/repository/snapshot.ts';
import { parseTimestamp } from '../../src/repository/timestamps.ts';
import { Archive } from './support/archive.ts';

/** A snapshot as another client writes it: no source, no run. */
async function foreignSnapshot(archive: Archive, time: string): Promise<string> {
  await archive.container.createIfMissing();
  const timestampTicks = parseTimestamp(time);
  const name = snapshotNameOf(timestampTicks);
  const rootHash = parseFileTreeHash('cd'.repeat(32));
  const body = serializeSnapshot({ timestampTicks, rootHash, fileCount: 7, originalSize: 70, ariusVersion: '0.0.51' });
  await archive.container.write(snapshotBlobName(name), await archive.codec.encode(body), {
    condition: { absent: true },
    contentType: 'application/zstd',
  });
  return name;
}

describe('creating a repository', () => {
  it('makes a plain one without a proof', async () => {
    const archive = await new Archive().create();
    const repository = await archive.service.repositories.get('photos');
    expect(repository).toMatchObject({
      name: 'photos',
      kind: 'plain',
      tier: 'cool',
      epoch: null,
      passphraseProof: null,
    });
    expect(await archive.container.exists()).toBe(true);
    expect((await archive.service.repositories.list()).repositories).toEqual([repository]);
  });

  it('makes a sealed one whose proof only the right passphrase opens', async () => {
    const archive = await new Archive({ passphrase: 'correct horse' }).create();
    const { passphraseProof } = await archive.service.repositories.get('photos');
    const proof = Buffer.from(passphraseProof ?? '', 'base64');
    await expect(archive.codec.decode(proof, 1000)).resolves.toBeInstanceOf(Uint8Array);
    const wrong = createBodyCodec(new Passphrase('wrong horse'));
    await expect(wrong.decode(proof, 1000)).rejects.toMatchObject({ reason: 'wrong' });
    await expect(createBodyCodec(undefined).decode(proof, 1000)).rejects.toMatchObject({ reason: 'needed' });
  });

  it('needs the passphrase of a sealed one in the service, and names the setting', async () => {
    const archive = new Archive({ passphrase: 'correct horse', servicePassphrase: undefined });
    await expect(archive.create()).rejects.toMatchObject({
      code: 'passphrase-missing-in-service',
      next: expect.stringContaining('ARIUS_PASSPHRASE__PHOTOS'),
    });
    expect(await archive.container.exists()).toBe(false);
  });

  it('refuses a name that is taken, and a container that holds a repository already', async () => {
    const archive = await new Archive().create();
    const again = archive.service.repositories.create({ name: 'photos', kind: 'sealed' });
    await expect(again).rejects.toMatchObject({ code: 'repository-exists' });

    const foreign = new Archive();
    await foreignSnapshot(foreign, '2026-03-22T15:00:00Z');
    await expect(foreign.create()).rejects.toMatchObject({
      code: 'repository-exists',
      next: expect.stringContaining('Adopt'),
    });
  });

  it('goes on where a crash between container and row left it', async () => {
    const archive = new Archive();
    await archive.container.createIfMissing();
    await archive.create();
    expect(await archive.service.repositories.get('photos')).toMatchObject({ kind: 'plain' });
  });

  it('refuses names of the service itself and of a task hub', async () => {
    const { service } = await new Archive().create();
    for (const name of ['arius-staging', 'azure-webjobs-hosts', 'arius-leases', 'hub-largemessages']) {
      await expect(service.repositories.create({ name, kind: 'plain' })).rejects.toMatchObject({ code: 'not-allowed' });
      await expect(service.repositories.adopt(name, {})).rejects.toMatchObject({ code: 'not-allowed' });
    }
  });
});

describe('adopting a container', () => {
  it('takes kind, epoch and proof from the newest snapshot', async () => {
    for (const options of [{}, { passphrase: 'correct horse' }]) {
      const archive = new Archive(options);
      await archive.service.ready();
      await foreignSnapshot(archive, '2026-03-22T15:00:00Z');
      const newest = await foreignSnapshot(archive, '2026-03-23T15:00:00.123Z');
      const repository = await archive.service.repositories.adopt('photos', { tier: 'cold' });
      const kind = 'passphrase' in options ? 'sealed' : 'plain';
      expect(repository).toMatchObject({ kind, tier: 'cold', epoch: newest });
      if (kind === 'sealed') {
        const proof = Buffer.from(repository.passphraseProof ?? '', 'base64');
        expect(proof).toEqual(await archive.bodyOf(snapshotBlobName(newest)));
      }
      // Adopting twice is fine, and what was adopted is in use.
      expect(await archive.service.repositories.adopt('photos', {})).toEqual(repository);
      expect(
        (await archive.service.snapshots.list('photos', { source: undefined, continuation: undefined })).snapshots,
      ).toHaveLength(2);
    }
  });

  it('takes another body before the first snapshot', async () => {
    const archive = new Archive({ passphrase: 'correct horse' });
    await archive.service.ready();
    await archive.container.createIfMissing();
    await archive.container.write(
      filetreeBlobName(parseFileTreeHash('ab'.repeat(32))),
      await archive.codec.encode(Buffer.from('x')),
      {
        condition: { absent: true },
        contentType: 'application/zstd',
      },
    );
    const repository = await archive.service.repositories.adopt('photos', {});
    expect(repository).toMatchObject({ kind: 'sealed', epoch: null });
    await expect(
      archive.codec.decode(Buffer.from(repository.passphraseProof ?? '', 'base64'), 1000),
    ).resolves.toBeDefined();
  });

  it('refuses a wrong passphrase of the service, an empty container, and one that is not there', async () => {
    const wrong = new Archive({ passphrase: 'correct horse', servicePassphrase: 'wrong horse' });
    await wrong.service.ready();
    await foreignSnapshot(wrong, '2026-03-22T15:00:00Z');
    await expect(wrong.service.repositories.adopt('photos', {})).rejects.toMatchObject({ code: 'passphrase-wrong' });

    const empty = new Archive();
    await empty.service.ready();
    await expect(empty.service.repositories.adopt('photos', {})).rejects.toMatchObject({
      code: 'repository-not-found',
    });
    await empty.container.createIfMissing();
    await expect(empty.service.repositories.adopt('photos', {})).rejects.toMatchObject({ code: 'bad-request' });
  });
});

describe('opening a repository', () => {
  it('SN-04 SN-05: proves the passphrase of the service before anything is granted', async () => {
    const archive = await new Archive({ passphrase: 'correct horse' }).create();
    const another = new Archive({ passphrase: 'wrong horse' });
    const storage = archive.memory;
    const service = new (await import('../../src/service/service.ts')).Service({
      storage,
      jobsQueue: storage.queue('arius-jobs'),
      clock: archive.clock,
      passphrases: { passphraseOf: () => new Passphrase('wrong horse') },
    });
    const names = [`chunks/${another.hashOf('x')}`];
    await expect(service.grants.grant('photos', { purpose: 'create', names })).rejects.toMatchObject({
      code: 'passphrase-wrong',
    });
  });

  it('says when there is no such repository', async () => {
    const archive = await new Archive().create();
    await expect(archive.service.lookup.lookup('other', { hashes: ['ab'.repeat(32)] })).rejects.toMatchObject({
      code: 'repository-not-found',
    });
  });
});
