/**
 * Contents and tars share one name space: what has its name taken by another kind of chunk cannot be stored, which is told
 * for the files concerned and hinders no other.
 */

import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Hasher } from '../../../src/hashing/hasher.ts';
import { formatChunkMetadata } from '../../../src/repository/chunk-metadata.ts';
import { TarBundleWriter } from '../../../src/repository/tar-bundle.ts';
import { collected } from '../../support/bytes.ts';
import { expectRestored, setup } from '../support/archived-folder.ts';

/** The bytes of the tar that an archive packs of these small contents. */
async function bundleOf(contents: readonly string[]): Promise<Buffer> {
  const writer = new TarBundleWriter();
  const bytes = collected(writer.stream);
  for (const content of contents) {
    await writer.add(new Hasher().contentHash(Buffer.from(content)), Buffer.from(content));
  }
  writer.finish();
  return await bytes;
}

/** Paths of the files that were reported with this in their reason. */
function failedBy(lines: readonly Record<string, unknown>[], reason: string): unknown[] {
  return lines
    .filter(({ message }) => String(message).includes(reason))
    .map(({ path }) => path)
    .sort();
}

describe('archive, where a name is taken by another kind of chunk', () => {
  it('tells a small file that holds the bytes of a stored tar, and its duplicate, and archives all others', async () => {
    const { agent, folder, write } = await setup();
    write('a', 'content of a');
    write('b', 'content of b');
    await agent.run(['archive', folder]);
    const bundle = await bundleOf(['content of a', 'content of b']);
    write('c', bundle);
    write('copy of c', bundle);
    write('d', 'content of d');
    for (const again of [false, true]) {
      const { exitCode, summary, lines } = await agent.run(['archive', folder]);
      expect(exitCode).toBe(3);
      expect(summary).toMatchObject({ filesFailed: 2, filesUnchanged: again ? 3 : 2, snapshotPublished: !again });
      const name = new Hasher().contentHash(bundle);
      expect(failedBy(lines, `chunks/${name} holds a chunk of type "tar"`)).toEqual(['c', 'copy of c']);
    }
    unlinkSync(join(folder, 'c'));
    unlinkSync(join(folder, 'copy of c'));
    await expectRestored(agent, folder);
  });

  it('tells the members of a tar whose bytes are stored as a large file, and archives all others', async () => {
    const { agent, folder, write } = await setup();
    const [a, b] = ['a'.repeat(600_000), 'b'.repeat(600_000)];
    write('bundle', await bundleOf([a, b]));
    await agent.run(['archive', folder]);
    write('a', a);
    write('b', b);
    write('large', Buffer.alloc(1_200_000, 'large'));
    const { exitCode, summary, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(summary).toMatchObject({ filesFailed: 2, filesUnchanged: 1, chunksUploaded: 1, snapshotPublished: true });
    expect(failedBy(lines, 'holds a chunk of type "large"')).toEqual(['a', 'b']);
    // With one more member the tar has another name.
    write('c', 'c');
    expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 0 });
    await expectRestored(agent, folder);
  });

  it('tells a large file that holds the bytes of a stored tar, and archives all others', async () => {
    const { agent, folder, write } = await setup();
    const [a, b] = ['a'.repeat(600_000), 'b'.repeat(600_000)];
    write('a', a);
    write('b', b);
    await agent.run(['archive', folder]);
    write('bundle', await bundleOf([a, b]));
    write('large', Buffer.alloc(1_200_000, 'large'));
    const { exitCode, summary, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(summary).toMatchObject({ filesFailed: 1, filesUnchanged: 2, chunksUploaded: 1, snapshotPublished: true });
    expect(failedBy(lines, 'holds a chunk of type "tar"')).toEqual(['bundle']);
    unlinkSync(join(folder, 'bundle'));
    await expectRestored(agent, folder);
  });

  it('tells the one member of a tar whose name is taken by a tar of another client', async () => {
    const { service, agent, folder, write } = await setup();
    write('odd', 'odd');
    write('fine', 'fine');
    const metadata = formatChunkMetadata({ type: 'tar', chunkSize: 5 });
    const blob = { body: Buffer.from('a tar'), metadata, tier: 'Cool', contentType: 'application/zstd' };
    service.blobs.set(`chunks/${new Hasher().contentHash(Buffer.from('odd'))}`, blob);
    const { exitCode, summary, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(summary).toMatchObject({ filesFailed: 1, thinChunks: 1, tarsUploaded: 1, snapshotPublished: true });
    expect(failedBy(lines, 'holds a chunk of type "tar"')).toEqual(['odd']);
  });

  it('tells a large file whose upload the service refuses for it', async () => {
    const { service, agent, folder, write } = await setup();
    write('odd', Buffer.alloc(1_200_000, 'odd'));
    write('fine', 'fine');
    const refusal = {
      type: 'x',
      title: 'x',
      status: 409,
      code: 'chunk-type-conflict',
      detail: 'A tar is there.',
      next: 'x',
    };
    service.intercept = (route) => (route === 'recordEntries' ? { status: 409, body: refusal } : undefined);
    const { exitCode, summary, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(3);
    expect(summary).toMatchObject({ filesFailed: 1, snapshotPublished: true });
    expect(failedBy(lines, 'A tar is there.')).toEqual(['odd']);
  });
});
