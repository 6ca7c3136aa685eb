import { describe, expect, it } from 'vitest';
import { countingStorage } from '../../src/storage/counting.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';
import type { BlobWriteOptions } from '../../src/storage/ports.ts';
import { defined } from './conformance/subject.ts';

const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'text/plain' };
const NONE = {
  'blob-read': 0,
  'blob-head': 0,
  'blob-write': 0,
  'blob-delete': 0,
  'blob-list': 0,
  'table-read': 0,
  'table-write': 0,
  queue: 0,
};
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const inAMinute = (): Date => new Date(Date.now() + 60_000);

describe('countingStorage', () => {
  it('counts blob requests by class, and the bytes of bodies', async () => {
    const counting = countingStorage(new MemoryStorage());
    const container = counting.storage.container('photos');
    expect(container.name).toBe('photos');
    await container.createIfMissing();
    await container.exists();
    const written = await container.write('a', bytes('12345'), ABSENT);
    await container.head('a');
    await container.read('a', 10);
    await container.read('missing', 10);
    await container.listPage('');
    await counting.storage.listContainersPage('');
    await container.stageBlock('b', 'YQ==', bytes('123'));
    await container.stageBlockFromUrl('b', 'Yg==', await container.signedUrl('a', 'read', inAMinute()), {
      offsetBytes: 0,
      lengthBytes: 5,
    });
    await container.commitBlocks('b', ['YQ==', 'Yg=='], ABSENT);
    await container.delete('a', { etag: written.outcome === 'written' ? written.etag : '' });
    expect(counting.counts()).toEqual({
      ...NONE,
      'blob-head': 2,
      'blob-write': 5,
      'blob-read': 2,
      'blob-list': 2,
      'blob-delete': 1,
    });
    expect(counting.bytes()).toEqual({ read: 5, written: 8 });
  });

  it('counts what was really read of a stream', async () => {
    const counting = countingStorage(new MemoryStorage());
    const container = counting.storage.container('photos');
    await container.createIfMissing();
    await container.write('big', new Uint8Array(300_000), ABSENT);
    for await (const piece of defined(await container.openRead('big')).body) {
      expect(counting.bytes().read).toBe(piece.byteLength);
      break;
    }
    expect(counting.bytes().read).toBeLessThan(300_000);
    expect(await container.openRead('missing')).toBeUndefined();
    expect(counting.counts()).toEqual({ ...NONE, 'blob-write': 2, 'blob-read': 2 });
  });

  it('counts through an expiring container into the same sums, and signatures not at all', async () => {
    const counting = countingStorage(new MemoryStorage());
    const container = counting.storage.container('photos');
    await container.createIfMissing();
    const expiring = await (await container.expiringAt(inAMinute())).expiringAt(inAMinute());
    await expiring.write('shard', bytes('12'), ABSENT);
    await expiring.head('shard');
    expect(counting.counts()).toEqual({ ...NONE, 'blob-write': 2, 'blob-head': 1 });
    expect(counting.bytes()).toEqual({ read: 0, written: 2 });
  });

  it('counts append blobs, tables and queues', async () => {
    const counting = countingStorage(new MemoryStorage());
    const { storage } = counting;
    await storage.container('logs').createIfMissing();
    const logs = storage.appendBlobs('logs');
    await logs.createAppend('log');
    await logs.append('log', bytes('123'), 0, 10);

    const table = storage.table('pending');
    expect(table.name).toBe('pending');
    await table.createIfMissing();
    await table.insert('p', 'r', {});
    const etag = await table.upsert('p', 'r', {});
    await table.replace('p', 'r', {}, etag);
    await table.batch('p', [{ kind: 'upsert', rowKey: 's', values: {} }]);
    await table.delete('p', 'r', etag);
    await table.get('p', 'r');
    await table.queryPage({});

    const queue = storage.queue('wake');
    expect(queue.name).toBe('wake');
    await queue.createIfMissing();
    await queue.send('x');
    const [message] = await queue.receive({ max: 1, invisibleSeconds: 1 });
    await queue.delete(defined(message));
    expect(counting.counts()).toEqual({ ...NONE, 'blob-write': 3, 'table-write': 6, 'table-read': 2, queue: 4 });
  });

  it('tells an observer of each request when it is made', async () => {
    const observed: string[] = [];
    const { storage } = countingStorage(new MemoryStorage(), (requestClass) => {
      observed.push(requestClass);
    });
    const container = storage.container('photos');
    await container.createIfMissing();
    await container.write('a', bytes('x'), ABSENT);
    await (await container.expiringAt(inAMinute())).head('a');
    expect(observed).toEqual(['blob-write', 'blob-write', 'blob-head']);
  });

  it('hands out copies of its counts', async () => {
    const counting = countingStorage(new MemoryStorage());
    const before = counting.counts();
    await counting.storage.container('photos').createIfMissing();
    expect(before).toEqual(NONE);
  });
});
