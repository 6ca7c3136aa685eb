import { describe, expect, it } from 'vitest';
import type { ArchiveContext } from '../../../src/agent/archive/archive-context.ts';
import { FiletreeReader } from '../../../src/agent/snapshots/filetree-reader.ts';
import type { FileTreeHash } from '../../../src/hashing/hashes.ts';
import { FILETREE_MEMORY_BYTES_MAX } from '../../../src/limits.ts';
import { type FileTreeEntry, serializeFileTree } from '../../../src/repository/filetree.ts';
import { archiveContext } from '../support/archive-context.ts';
import { ConnectionCut, type FakeBlob, type FakeService } from '../support/fake-service.ts';
import { startFakeService } from '../support/run-command.ts';

function entries(count: number): FileTreeEntry[] {
  return Array.from({ length: count }, (_, i) => ({
    kind: 'directory',
    name: `d${String(i).padStart(7, '0')}`,
    fileTreeHash: 'ab'.repeat(32) as FileTreeHash,
  }));
}

async function store(service: FakeService, context: ArchiveContext, text: Uint8Array): Promise<FileTreeHash> {
  const hash = context.hasher.fileTreeHash(text);
  const body = Buffer.from(await context.codec.encode(text));
  service.blobs.set(`filetrees/${hash}`, { body, metadata: {}, tier: 'Cool', contentType: '' });
  return hash;
}

async function read(context: ArchiveContext, hash: FileTreeHash): Promise<FileTreeEntry[]> {
  const all: FileTreeEntry[] = [];
  for await (const page of new FiletreeReader(context).read(hash)) {
    all.push(...page);
  }
  return all;
}

describe('FiletreeReader', () => {
  it('FT-55: downloads a node once and yields its entries', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const hash = await store(service, context, serializeFileTree(entries(3)));
    expect(await read(context, hash)).toEqual(entries(3));
    expect(service.count('get')).toBe(1);
  });

  it('FT-13: reads a node with CRLF that was hashed as it is', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const text = Buffer.from(serializeFileTree(entries(3)))
      .toString()
      .replaceAll('\n', '\r\n');
    expect(await read(context, await store(service, context, Buffer.from(text)))).toEqual(entries(3));
  });

  it('invariant 7: yields a large node in pages, after it was verified whole', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const all = entries(15_000);
    const text = serializeFileTree(all);
    expect(text.byteLength).toBeGreaterThan(FILETREE_MEMORY_BYTES_MAX);
    const hash = await store(service, context, text);
    let pages = 0;
    const seen: FileTreeEntry[] = [];
    for await (const page of new FiletreeReader(context).read(hash)) {
      pages++;
      seen.push(...page);
    }
    expect(seen).toEqual(all);
    expect(pages).toBeGreaterThan(5);
  });

  it('FT-58: says that a node is missing', async () => {
    const { context } = await archiveContext(await startFakeService());
    await expect(read(context, 'cd'.repeat(32) as FileTreeHash)).rejects.toMatchObject({
      code: 'blob-corrupt',
      message: expect.stringContaining('missing') as string,
    });
  });

  it('invariant 11: never yields an entry of a node that is truncated, damaged, or another one', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const hash = await store(service, context, serializeFileTree(entries(3)));
    const name = `filetrees/${hash}`;
    const whole = service.blobs.get(name) as FakeBlob;
    const flipped = Buffer.from(whole.body);
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    const other = Buffer.from(await context.codec.encode(serializeFileTree(entries(2))));
    for (const body of [whole.body.subarray(0, -1), flipped, other, Buffer.alloc(0)]) {
      service.blobs.set(name, { ...whole, body });
      const pages: FileTreeEntry[][] = [];
      await expect(
        (async () => {
          for await (const page of new FiletreeReader(context).read(hash)) {
            pages.push(page);
          }
        })(),
      ).rejects.toMatchObject({ code: 'blob-corrupt' });
      expect(pages).toEqual([]);
    }
  });

  it('FT-57: asks again when the connection breaks', async () => {
    const service = await startFakeService();
    const { context } = await archiveContext(service);
    const hash = await store(service, context, serializeFileTree(entries(3)));
    let cuts = 2;
    service.before = ({ kind }) => {
      if (kind === 'get' && cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    expect(await read(context, hash)).toEqual(entries(3));
  });
});
