import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startAzurite } from '../../src/local/azurite.ts';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'azurite-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const BODY = new TextEncoder().encode('kept');

async function writeBlob(connectionString: string): Promise<void> {
  const container = azureStorage({ connectionString }).container('kept');
  await container.createIfMissing();
  const written = await container.write('blob', BODY, { condition: { absent: true }, contentType: 'text/plain' });
  expect(written.outcome).toBe('written');
}

async function readBlob(connectionString: string): Promise<Uint8Array | undefined> {
  return (await azureStorage({ connectionString }).container('kept').read('blob', 100))?.bytes;
}

/** A process that starts Azurite, prints its connection string, and is then killed by the test. */
function startOwner(): ReturnType<typeof spawn> {
  const script = `
    import { startAzurite } from ${JSON.stringify(new URL('../../src/local/azurite.ts', import.meta.url).href)};
    const azurite = await startAzurite({ directory: ${JSON.stringify(directory)} });
    console.log(azurite.connectionString);
    setInterval(() => {}, 1000);
  `;
  return spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] });
}

describe('startAzurite', () => {
  it('serves blobs, queues and tables in memory, and leaves nothing when stopped', async () => {
    const azurite = await startAzurite({ directory: undefined });
    await writeBlob(azurite.connectionString);
    const storage = azureStorage(azurite);
    await storage.queue('kept').createIfMissing();
    await storage.table('kept').createIfMissing();
    expect(await readBlob(azurite.connectionString)).toEqual(BODY);
    await azurite.stop();
    expect(await azurite.exited).toBe(0);
    await expect(readBlob(azurite.connectionString)).rejects.toThrow();
  });

  it('keeps what was written just before stop, and the same key, which only this user can read', async () => {
    const first = await startAzurite({ directory });
    await writeBlob(first.connectionString);
    await first.stop();
    const second = await startAzurite({ directory });
    expect(await readBlob(second.connectionString)).toEqual(BODY);
    await second.stop();
    const accountKey = await readFile(join(directory, 'account-key'), 'utf8');
    expect(first.connectionString).toContain(accountKey);
    expect(second.connectionString).toContain(accountKey);
    expect((await stat(join(directory, 'account-key'))).mode & 0o777).toBe(0o600);
  });

  it('ends and saves when its parent is killed; the next one waits until it has', async () => {
    const owner = startOwner();
    const lines = createInterface({ input: owner.stdout as NodeJS.ReadableStream });
    const [connectionString] = (await once(lines, 'line')) as [string];
    await writeBlob(connectionString);
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const next = await startAzurite({ directory });
    expect(await readBlob(next.connectionString)).toEqual(BODY);
    await expect(readBlob(connectionString)).rejects.toThrow();
    await next.stop();
  });

  it('says why it did not start', async () => {
    await mkdir(join(directory, '__azurite_db_blob__.json'));
    await expect(startAzurite({ directory })).rejects.toThrow(/Azurite ended at start: .*EISDIR/s);
  });
});
