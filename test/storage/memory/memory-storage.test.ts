import { describe, expect, it } from 'vitest';
import type { StorageRequest } from '../../../src/storage/memory/gate.ts';
import { MemoryStorage } from '../../../src/storage/memory/memory-storage.ts';
import type { BlobWriteOptions } from '../../../src/storage/ports.ts';
import { StorageUnanswered } from '../../../src/storage/refusal.ts';
import { codeOf } from '../conformance/subject.ts';

const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'text/plain' };
const body = new TextEncoder().encode('body');

async function storageWithContainer(options: ConstructorParameters<typeof MemoryStorage>[0] = {}) {
  const storage = new MemoryStorage(options);
  const container = storage.container('photos');
  await container.createIfMissing();
  return { storage, container };
}

describe('MemoryStorage', () => {
  it('calls the hook before and after every request, with what it is about', async () => {
    const { storage, container } = await storageWithContainer();
    const table = storage.table('pending');
    const seen: StorageRequest[] = [];
    storage.onRequest = (request) => {
      seen.push(request);
    };
    await container.write('chunks/a', body, ABSENT);
    await table.createIfMissing();
    await table.insert('photos_00', 'key', {});
    await storage.queue('wake').createIfMissing();
    expect(seen.map(({ phase, kind, container: where, name }) => [phase, kind, where, name])).toEqual([
      ['before', 'blob-write', 'photos', 'chunks/a'],
      ['after', 'blob-write', 'photos', 'chunks/a'],
      ['before', 'table-create', 'pending', ''],
      ['after', 'table-create', 'pending', ''],
      ['before', 'row-insert', 'pending', 'photos_00/key'],
      ['after', 'row-insert', 'pending', 'photos_00/key'],
      ['before', 'queue-create', 'wake', ''],
      ['after', 'queue-create', 'wake', ''],
    ]);
  });

  it('applies a request only when the hook lets it, so that a simulation decides the order', async () => {
    const { storage, container } = await storageWithContainer();
    const waiting: (() => void)[] = [];
    storage.onRequest = async ({ phase, kind }) => {
      if (phase === 'before' && kind === 'blob-write') {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    };
    const first = container.write('race', new TextEncoder().encode('first'), ABSENT);
    const second = container.write('race', new TextEncoder().encode('second'), ABSENT);
    await Promise.resolve();
    expect(storage.account.container('photos').list('', {}).blobs).toEqual([]);
    waiting[1]?.();
    expect((await second).outcome).toBe('written');
    waiting[0]?.();
    expect((await first).outcome).toBe('conflict');
  });

  it.each(['before', 'after'] as const)('a crash %s a request reaches the caller as it is, once', async (phase) => {
    const { storage, container } = await storageWithContainer();
    const crash = new Error('the process died');
    let requests = 0;
    storage.onRequest = (request) => {
      requests += request.phase === 'before' ? 1 : 0;
      if (request.phase === phase) {
        throw crash;
      }
    };
    await expect(container.write('a', body, ABSENT)).rejects.toBe(crash);
    expect(requests).toBe(1);
    storage.onRequest = undefined;
    expect((await container.head('a')) !== undefined).toBe(phase === 'after');
  });

  it('gives up after a bounded number of attempts', async () => {
    const { storage, container } = await storageWithContainer();
    let requests = 0;
    storage.onRequest = ({ phase }) => {
      if (phase === 'before') {
        requests += 1;
        throw new StorageUnanswered('lost');
      }
    };
    expect(await codeOf(container.write('a', body, ABSENT))).toBe('storage-failed');
    expect(requests).toBe(5);
  });

  it('keeps a deadline by its own clock, at the moment a request arrives', async () => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z');
    const { storage, container } = await storageWithContainer({ clock: { now: () => new Date(nowMs) } });
    const expiring = await container.expiringAt(new Date(nowMs + 1000));
    nowMs += 999;
    expect((await expiring.write('in time', body, ABSENT)).outcome).toBe('written');
    // Sent in time, but on its way when the deadline passed.
    storage.onRequest = ({ phase }) => {
      nowMs += phase === 'before' ? 1 : 0;
    };
    expect(await codeOf(expiring.write('late', body, ABSENT))).toBe('not-allowed');
    expect(await codeOf(expiring.delete('in time', { etag: 'any' }))).toBe('not-allowed');
    storage.onRequest = undefined;
    expect((await container.listPage('')).blobs.map((blob) => blob.name)).toEqual(['in time']);
    expect((await container.head('in time'))?.lastModified).toEqual(new Date(Date.parse('2026-01-01T00:00:00.999Z')));
  });

  it('makes the same ETags in the same run, so that a simulation can be replayed', async () => {
    const etags = await Promise.all(
      [1, 2].map(async () => {
        const { container } = await storageWithContainer();
        await container.write('a', body, ABSENT);
        return (await container.head('a'))?.etag;
      }),
    );
    expect(etags[0]).toBe(etags[1]);
  });

  it('refuses a signed URL that was altered or belongs to another account', async () => {
    const { storage, container } = await storageWithContainer();
    await container.write('a', body, ABSENT);
    const url = await container.signedUrl('a', 'read', new Date(Date.now() + 60_000));
    const range = { offsetBytes: 0, lengthBytes: body.byteLength };
    await container.stageBlockFromUrl('copy', 'YQ==', url, range);
    for (const altered of [
      url.replace('/a?', '/b?'),
      url.replace('sp=r', 'sp=cw'),
      url.replace(/se=[^&]+/, 'se=2999-01-01'),
    ]) {
      expect(altered).not.toBe(url);
      expect(await codeOf(container.stageBlockFromUrl('copy', 'YQ==', altered, range))).toBe('not-allowed');
    }
    const other = await storageWithContainer();
    expect(await codeOf(other.container.stageBlockFromUrl('copy', 'YQ==', url, range))).toBe('not-allowed');
    expect(storage.signer.verify(url, new Date())).toEqual({ container: 'photos', name: 'a', permissions: 'r' });
  });
});
