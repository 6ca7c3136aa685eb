import { describe, expect, it } from 'vitest';
import { type ManifestSection, ManifestWriter } from '../../src/chunk-index/manifest.ts';
import { openManifest } from '../../src/chunk-index/manifest-reader.ts';
import { hash, World } from './world.ts';

const NAME = 'photos/job/manifests/aa';

function section(n: number, rowCount: number): ManifestSection {
  return {
    prefix: `aa${n.toString(16)}`,
    etag: `0x"${n}"`,
    rows: Array.from({ length: rowCount }, (_, row) => ({ contentHash: hash(n * 100 + row), etag: `W/"${row}'%"` })),
  };
}

async function written(world: World, sections: readonly ManifestSection[], blockBytes: number): Promise<void> {
  const writer = new ManifestWriter(NAME, 'aa', (request) => request(world.staging), blockBytes);
  for (const each of sections) {
    await writer.add(each);
  }
  expect(await writer.commit()).toMatchObject({ outcome: 'written' });
}

async function read(world: World, blockBytes: number, root = 'aa'): Promise<ManifestSection[] | undefined> {
  const sections = await openManifest(world.staging, NAME, root, blockBytes);
  return sections === undefined ? undefined : await all(sections);
}

async function all(sections: AsyncIterable<ManifestSection>): Promise<ManifestSection[]> {
  const read: ManifestSection[] = [];
  for await (const each of sections) {
    read.push(each);
  }
  return read;
}

async function overwrite(world: World, change: (text: string) => string): Promise<void> {
  const stored = await world.staging.read(NAME, 1e9);
  const text = change(Buffer.from(stored?.bytes ?? []).toString());
  const options = { condition: { etag: stored?.etag ?? '' }, contentType: 'application/x-ndjson' };
  await world.staging.write(NAME, Buffer.from(text), options);
}

describe('the manifest of a flush', () => {
  const sections = [section(1, 3), section(2, 0), section(3, 40)];

  it.each([10, 100, 1_000, 100_000])('survives in blocks of %i bytes, read in any others', async (blockBytes) => {
    const world = await World.create();
    await written(world, sections, blockBytes);
    for (const other of [7, 64, 999, 1_000_000]) {
      expect(await read(world, other)).toEqual(sections);
    }
  });

  it('is one request when it is small, and one block after the other when it is not', async () => {
    const world = await World.create();
    world.watch();
    await written(world, sections, 100_000);
    expect(world.requests).toEqual([`blob-write arius-staging/${NAME}`]);
    const large = await World.create();
    large.watch();
    await written(large, sections, 1_000);
    expect(large.count('block-stage')).toBeGreaterThan(1);
    expect(large.count('block-commit')).toBe(1);
  });

  it('holds no rows: also a manifest', async () => {
    const world = await World.create();
    await written(world, [], 1_000);
    expect(await read(world, 1_000)).toEqual([]);
  });

  it('replaces that of an earlier round', async () => {
    const world = await World.create();
    await written(world, sections, 100_000);
    await written(world, sections.slice(0, 1), 1_000);
    expect(await read(world, 1_000)).toEqual(sections.slice(0, 1));
    await written(world, sections, 1_000);
    expect(await read(world, 1_000)).toEqual(sections);
  });

  it('that does not exist is undefined', async () => {
    expect(await read(await World.create(), 1_000)).toBeUndefined();
  });

  it('invariant 11: cut, altered, or of another root, it is an error and never a part of itself', async () => {
    for (const change of [
      (text: string) => text.slice(0, text.lastIndexOf('["end"')),
      (text: string) => text.replace('["row"', '["raw"'),
      (text: string) => text.replace(/\["row".*\n/, ''),
      (text: string) => text.replace('"aa"', '"ab"'),
      (text: string) => text.replace('arius-flush-manifest', 'another'),
    ]) {
      const world = await World.create();
      await written(world, sections, 100_000);
      await overwrite(world, change);
      await expect(read(world, 1_000)).rejects.toMatchObject({ code: 'pending-not-flushed' });
    }
  });

  it('that is replaced while it is read is an error, not a mixture', async () => {
    const world = await World.create();
    await written(world, sections, 100_000);
    const reading = await openManifest(world.staging, NAME, 'aa', 500);
    if (reading === undefined) throw new Error('a manifest');
    await reading.next();
    await written(world, sections, 100_000);
    await expect(all(reading)).rejects.toMatchObject({ code: 'pending-not-flushed' });
  });
});
