import { describe, expect, it } from 'vitest';
import {
  BlobArchivedError,
  BlobClient,
  BlobMissingError,
  bodyOf,
  type PutBlobOptions,
} from '../../../src/agent/transport/blob-client.ts';
import { ConnectionCut, type FakeService } from '../support/fake-service.ts';
import { startFakeService } from '../support/run-command.ts';

const options: PutBlobOptions = { contentType: 'application/zstd', metadata: { arius_type: 'tar' }, tier: 'cold' };
const NAME = `chunks/${'ab'.repeat(32)}`;

function client(): BlobClient {
  return new BlobClient({ signal: new AbortController().signal, sleep: async () => undefined });
}

async function grant(service: FakeService, purpose: 'create' | 'read', name = NAME): Promise<string> {
  if (service.info === undefined) {
    service.addRepository('plain');
  }
  const response = await fetch(`${service.url}/api/repositories/default/grants`, {
    method: 'POST',
    headers: { 'x-functions-key': service.functionKey },
    body: JSON.stringify({ purpose, names: [name] }),
  });
  const { grants } = (await response.json()) as { grants: { url: string }[] };
  return grants[0]?.url ?? '';
}

async function read(blobs: BlobClient, url: string): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const bytes of await blobs.read(url)) {
    parts.push(bytes);
  }
  return Buffer.concat(parts).toString();
}

describe('BlobClient.create', () => {
  it('creates a blob with body, content type, metadata and tier in one request', async () => {
    const service = await startFakeService();
    const blobs = client();
    const outcome = await blobs.create(await grant(service, 'create'), bodyOf(Buffer.from('body')), options);
    expect(outcome).toBe('created');
    expect(service.blobs.get(NAME)).toEqual({
      body: Buffer.from('body'),
      metadata: { arius_type: 'tar' },
      tier: 'Cold',
      contentType: 'application/zstd',
    });
    expect(blobs.counts).toEqual({ 'blob-write': 1, 'blob-read': 0 });
  });

  it('creates an empty blob', async () => {
    const service = await startFakeService();
    expect(await client().create(await grant(service, 'create'), bodyOf(Buffer.alloc(0)), options)).toBe('created');
    expect(service.blobs.get(NAME)?.body.byteLength).toBe(0);
  });

  it('never overwrites: what is there is a conflict', async () => {
    const service = await startFakeService();
    const blobs = client();
    await blobs.create(await grant(service, 'create'), bodyOf(Buffer.from('first')), options);
    expect(await blobs.create(await grant(service, 'create'), bodyOf(Buffer.from('second')), options)).toBe('conflict');
    expect(service.blobs.get(NAME)?.body.toString()).toBe('first');
  });

  it('tells a signature that is not accepted from a blob that is there', async () => {
    const service = await startFakeService();
    const url = (await grant(service, 'create')).replace(/sig=.*/, 'sig=expired');
    expect(await client().create(url, bodyOf(Buffer.from('x')), options)).toBe('refused');
  });

  it('after a lost answer finds its own blob, as a conflict', async () => {
    const service = await startFakeService();
    let cuts = 1;
    service.after = ({ kind }) => {
      if (kind === 'put' && cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    expect(await client().create(await grant(service, 'create'), bodyOf(Buffer.from('x')), options)).toBe('conflict');
    expect(service.count('put')).toBe(2);
  });

  it('does not know when no answer comes at all', async () => {
    const service = await startFakeService();
    service.before = ({ kind }) => {
      if (kind === 'put') {
        throw new ConnectionCut();
      }
    };
    expect(await client().create(await grant(service, 'create'), bodyOf(Buffer.from('x')), options)).toBe('unknown');
  });

  it('sends a body again that was damaged on its way', async () => {
    const service = await startFakeService();
    const good = bodyOf(Buffer.from('good'));
    let opened = 0;
    const outcome = await client().create(
      await grant(service, 'create'),
      {
        ...good,
        async *open() {
          yield Buffer.from(opened++ === 0 ? 'baad' : 'good');
        },
      },
      options,
    );
    expect(outcome).toBe('created');
    expect(service.blobs.get(NAME)?.body.toString()).toBe('good');
  });
});

describe('BlobClient.read', () => {
  it('reads a body, and counts its bytes', async () => {
    const service = await startFakeService();
    const blobs = client();
    await blobs.create(await grant(service, 'create'), bodyOf(Buffer.from('body')), options);
    expect(await read(blobs, await grant(service, 'read'))).toBe('body');
    expect(blobs.bytesDownloaded).toBe(4);
  });

  it('tells a missing blob, an archived one, and a signature that does not allow it', async () => {
    const service = await startFakeService();
    const blobs = client();
    await expect(read(blobs, await grant(service, 'read'))).rejects.toBeInstanceOf(BlobMissingError);
    service.archived.add(NAME);
    await expect(read(blobs, await grant(service, 'read'))).rejects.toBeInstanceOf(BlobArchivedError);
    await expect(read(blobs, await grant(service, 'create'))).rejects.toMatchObject({ code: 'storage-failed' });
  });

  it('asks again when the connection breaks before the answer, and gives up in the end', async () => {
    const service = await startFakeService();
    const blobs = client();
    await blobs.create(await grant(service, 'create'), bodyOf(Buffer.from('body')), options);
    const url = await grant(service, 'read');
    let cuts = 2;
    service.before = () => {
      if (cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    expect(await read(blobs, url)).toBe('body');
    service.before = () => {
      throw new ConnectionCut();
    };
    await expect(read(blobs, url)).rejects.toMatchObject({ code: 'storage-failed' });
  });
});
