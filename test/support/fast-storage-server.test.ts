import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';
import type { BlobWriteOptions } from '../../src/storage/ports.ts';
import { startFastStorageServer } from './fast-storage-server.ts';

const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'application/octet-stream' };
const ENTRY = fileURLToPath(new URL('./fast-storage-server.ts', import.meta.url));

describe('the fast storage server', () => {
  it('runs as a child, says where it is in one line, and ends with the pipe it was started with', async () => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ENTRY], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    const [connectionString] = (await once(createInterface(child.stdout), 'line')) as [string];
    const container = azureStorage({ connectionString }).container('photos');
    expect(await container.createIfMissing()).toBe(true);
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });

  it('discards large bodies of chunks, and nothing else: length, MD5 and metadata stay', async () => {
    const server = await startFastStorageServer({ discardBodiesAboveBytes: 1000 });
    try {
      const container = azureStorage(server).container('photos');
      await container.createIfMissing();
      const body = new Uint8Array(3000).fill(7);
      const metadata = { arius_type: 'large' };
      for (const name of ['chunks/large', 'filetrees/large']) {
        await container.write(name, body, { ...ABSENT, metadata, tier: 'cool' });
        expect(await container.head(name)).toMatchObject({ contentLengthBytes: 3000, metadata, tier: 'cool' });
      }
      await container.write('chunks/small', body.subarray(0, 1000), ABSENT);
      expect((await container.read('chunks/small', 3000))?.bytes[0]).toBe(7);
      expect((await container.read('filetrees/large', 3000))?.bytes[0]).toBe(7);
      const discarded = server.account.container('photos').head('chunks/large');
      expect(discarded.contentMd5()).toBe(createHash('md5').update(body).digest('base64'));
      expect((await container.read('chunks/large', 3000))?.bytes).toEqual(new Uint8Array(3000));
    } finally {
      await server.stop();
    }
  });

  it('stores nothing of a request whose body was cut off', async () => {
    const server = await startFastStorageServer();
    try {
      const container = azureStorage(server).container('photos');
      await container.createIfMissing();
      const url = await container.signedUrl('a', 'create', new Date(Date.now() + 60_000));
      const cutOff = new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(10));
          setTimeout(() => controller.error(new Error('cut')), 50);
        },
      });
      const headers = { 'x-ms-blob-type': 'BlockBlob', 'content-length': '100' };
      await expect(fetch(url, { method: 'PUT', headers, body: cutOff, duplex: 'half' })).rejects.toThrow();
      expect(await container.head('a')).toBeUndefined();
    } finally {
      await server.stop();
    }
  });
});
