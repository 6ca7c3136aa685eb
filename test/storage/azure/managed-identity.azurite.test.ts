/** The way it runs in Azure: no key anywhere, tokens of an identity, signatures by a user-delegation key, HTTPS. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { azureStorage } from '../../../src/storage/azure/azure-storage.ts';
import type { BlobContainer, BlobWriteOptions, Storage } from '../../../src/storage/ports.ts';
import { selfSignedForLoopback } from '../../support/self-signed.ts';
import { codeOf, freshName } from '../conformance/subject.ts';

/** Ends with this process, whatever becomes of it. */
const AZURITE = fileURLToPath(new URL('../../../src/local/azurite-child.ts', import.meta.url));
const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'text/plain' };
const inAMinute = (): Date => new Date(Date.now() + 60_000);
const body = new TextEncoder().encode('body');

/** What the emulator accepts for an identity's token: the claims count, a signature does not. */
function token(): string {
  const seconds = Math.floor(Date.now() / 1000);
  const claims = {
    aud: 'https://storage.azure.com',
    iss: 'https://sts.windows.net/11111111-1111-1111-1111-111111111111/',
    iat: seconds - 60,
    nbf: seconds - 60,
    exp: seconds + 3600,
    oid: '22222222-2222-2222-2222-222222222222',
    tid: '11111111-1111-1111-1111-111111111111',
  };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims)}.`;
}

async function startAzurite(directory: string): Promise<{ child: ChildProcess; ports: readonly string[] }> {
  const { certificatePem, keyPem } = selfSignedForLoopback();
  await writeFile(join(directory, 'certificate.pem'), certificatePem);
  await writeFile(join(directory, 'key.pem'), keyPem);
  setDefaultCACertificates([...getCACertificates('default'), certificatePem]);
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=DeprecationWarning',
      AZURITE,
      ...['--silent', '--disableTelemetry', '--skipApiVersionCheck', '--inMemoryPersistence', '--oauth', 'basic'],
      ...['--cert', join(directory, 'certificate.pem'), '--key', join(directory, 'key.pem')],
      ...['--blobPort', '0', '--queuePort', '0', '--tablePort', '0'],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  // The account comes first; its key is not used with an identity.
  child.stdin?.write(`devstoreaccount1:${Buffer.from('no key').toString('base64')}\n`);
  let output = '';
  const ports = await new Promise<string[]>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`Azurite ended: ${output}`)));
    child.stdout?.on('data', (data: Buffer) => {
      output += data.toString();
      const found = ['Blob', 'Queue', 'Table'].map(
        (service) =>
          new RegExp(`Azurite ${service} service is successfully listening at \\S+:(\\d+)`).exec(output)?.[1],
      );
      const complete = found.filter((port) => port !== undefined);
      if (complete.length === found.length) {
        resolve(complete);
      }
    });
  });
  return { child, ports };
}

describe('azureStorage with a managed identity', () => {
  let directory: string;
  let azurite: ChildProcess;
  let storage: Storage;
  let container: BlobContainer;
  let tokens = 0;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'identity-'));
    const { child, ports } = await startAzurite(directory);
    azurite = child;
    const [blob, queue, table] = ports.map((port) => `https://127.0.0.1:${port}/devstoreaccount1`);
    storage = azureStorage({
      accountName: 'devstoreaccount1',
      credential: {
        getToken: async () => {
          tokens += 1;
          return { token: token(), expiresOnTimestamp: Date.now() + 3_600_000 };
        },
      },
      endpoints: { blob: String(blob), queue: String(queue), table: String(table) },
    });
  });

  afterAll(async () => {
    azurite.kill('SIGTERM');
    await once(azurite, 'exit');
    await rm(directory, { recursive: true });
  });

  beforeEach(async () => {
    container = storage.container(freshName());
    await container.createIfMissing();
  });

  it('reaches blobs, tables and queues with tokens, of which it does not ask one per request', async () => {
    const before = tokens;
    expect((await container.write('a', body, ABSENT)).outcome).toBe('written');
    expect((await container.read('a', 10))?.bytes).toEqual(body);
    const table = storage.table(freshName());
    await table.createIfMissing();
    const rows = [{ kind: 'insert', rowKey: 'r', values: { n: 1n } }] as const;
    expect(await table.batch('p', rows)).toEqual({ outcome: 'written' });
    expect((await table.queryPage({ partition: 'p' })).rows).toHaveLength(1);
    const queue = storage.queue(freshName());
    await queue.createIfMissing();
    await queue.send('wake');
    expect(await queue.receive({ max: 1, invisibleSeconds: 1 })).toHaveLength(1);
    expect(tokens - before).toBeLessThan(4);
  });

  it('signs create-only and read URLs, over HTTPS only', async () => {
    const url = await container.signedUrl('chunks/a b', 'create', inAMinute());
    expect(new URL(url).searchParams.get('spr')).toBe('https');
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'if-none-match': '*', 'x-ms-version': '2025-11-05' };
    expect((await fetch(url, { method: 'PUT', headers, body })).status).toBe(201);
    expect([403, 409]).toContain((await fetch(url, { method: 'PUT', headers, body })).status);
    expect((await fetch(url)).status).toBe(403);
    const readUrl = await container.signedUrl('chunks/a b', 'read', inAMinute());
    expect(await (await fetch(readUrl)).text()).toBe('body');
    await container.stageBlockFromUrl('copy', 'YQ==', readUrl, { offsetBytes: 1, lengthBytes: 3 });
    expect((await container.commitBlocks('copy', ['YQ=='], ABSENT)).outcome).toBe('written');
    expect((await container.read('copy', 10))?.bytes).toEqual(body.slice(1));
  });

  it('gives a container until a deadline', async () => {
    const expiring = await container.expiringAt(inAMinute());
    const written = await expiring.write('shard', body, ABSENT);
    expect(written.outcome).toBe('written');
    expect((await expiring.listPage('')).blobs).toHaveLength(1);
    const expired = await container.expiringAt(new Date(Date.now() - 5000));
    expect(await codeOf(expired.write('late', body, ABSENT))).toBe('not-allowed');
    expect(await container.head('late')).toBeUndefined();
  });

  it('says not-allowed when there is no token', async () => {
    const failing = azureStorage({
      accountName: 'a',
      credential: {
        getToken: async () => {
          throw Object.assign(new Error('no identity here'), { name: 'CredentialUnavailableError' });
        },
      },
    });
    expect(await codeOf(failing.container('photos').head('a'))).toBe('not-allowed');
    expect(await codeOf(failing.container('photos').signedUrl('a', 'read', inAMinute()))).toBe('not-allowed');
    expect(await codeOf(failing.table('pending').get('p', 'r'))).toBe('not-allowed');
    expect(await codeOf(failing.queue('wake').send('x'))).toBe('not-allowed');
  });
});
