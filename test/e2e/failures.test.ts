import { chmod, chown, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Azurite, startAzurite } from '../../src/local/azurite.ts';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';
import type { BlobContainer } from '../../src/storage/ports.ts';
import { expectFailure, lastMessage, Workplace } from './support/agent.ts';
import { bytesOf, describeTree, writeTree } from './support/trees.ts';

const AS_ROOT = process.getuid?.() === 0;
/** What the superuser may do to other users' files; without it, it is refused what anybody is. */
const WITHOUT_PRIVILEGE = AS_ROOT
  ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override,-dac_read_search']
  : [];

let place: Workplace;
let folder: string;

beforeEach(async () => {
  place = await Workplace.create();
  folder = place.folder('files');
  await writeTree(folder, { 'a.txt': 'a', 'b/c.txt': 'c', 'large.bin': bytesOf('large', 2 * 1024 * 1024) });
});

afterEach(async () => {
  await place.close();
});

/** Works on the container while no service runs. */
async function inStorage<T>(work: (container: BlobContainer) => Promise<T>): Promise<T> {
  const azurite: Azurite = await startAzurite({ directory: join(place.stateDirectory, 'storage') });
  try {
    return await work(azureStorage(azurite).container('default'));
  } finally {
    await azurite.stop();
  }
}

/** Name and ETag of every blob of the repository: equal means nothing was written. */
async function everyBlob(container: BlobContainer): Promise<string[]> {
  const page = await container.listPage('');
  return page.blobs.map(({ name, etag }) => `${name} ${etag}`);
}

/** On a file system of its own with this much room, which is gone with the command. */
function onSmallDisk(mountPoint: string, size: string): string[] {
  const script = `mount -t tmpfs -o size=${size} tmpfs "$0" && exec "$@"`;
  return ['unshare', ...(AS_ROOT ? ['-m'] : ['-Urm']), 'sh', '-c', script, mountPoint];
}

async function everyFileRestored(name: string, options: string[] = []): Promise<void> {
  await place.summary(['restore', place.folder(name), ...options]);
  expect(await describeTree(place.folder(name))).toEqual(await describeTree(folder));
}

describe('a failure has its exit code, a message with the next step, and damages nothing', () => {
  it('wrong passphrase: found before anything is uploaded', async () => {
    const right = place.folder('right');
    const wrong = place.folder('wrong');
    await writeFile(right, 'right');
    await writeFile(wrong, 'wrong');
    await place.summary(['archive', folder, '--passphrase-file', right]);
    const before = await inStorage(everyBlob);
    await writeTree(folder, { 'new.txt': 'new' });
    const archive = await place.run(['archive', folder, '--passphrase-file', wrong, '--json']);
    expectFailure(archive, { exit: 12, code: 'passphrase-wrong' });
    const without = await place.run(['archive', folder, '--json']);
    expectFailure(without, { exit: 12, code: 'passphrase-needed' });
    const restore = await place.run(['restore', place.folder('nothing'), '--passphrase-file', wrong, '--json']);
    expectFailure(restore, { exit: 12, code: 'passphrase-wrong' });
    expect(await inStorage(everyBlob)).toEqual(before);
    await place.summary(['archive', folder, '--passphrase-file', right]);
    await everyFileRestored('all', ['--passphrase-file', right]);
  });

  it('wrong URL: the service cannot be reached', async () => {
    const outcome = await place.run(['archive', folder, '--url', 'http://127.0.0.1:9', '--token', 'x', '--json']);
    expectFailure(outcome, { exit: 11, code: 'service-unreachable' });
    expect(await readdir(place.path)).not.toContain('state');
  });

  it('missing repository and missing snapshot', async () => {
    expectFailure(await place.run(['restore', place.folder('x'), '--repository', 'nothing-here', '--json']), {
      exit: 10,
      code: 'repository-not-found',
    });
    await place.summary(['archive', folder]);
    expectFailure(await place.run(['restore', place.folder('x'), '--snapshot', '1999', '--json']), {
      exit: 10,
      code: 'snapshot-not-found',
    });
  });

  it('folder that is missing or may not be read', async () => {
    expectFailure(await place.run(['archive', place.folder('missing'), '--json']), {
      exit: 1,
      code: 'folder-unreadable',
    });
    const closed = place.folder('closed');
    await mkdir(closed);
    if (AS_ROOT) await chown(closed, 12_345, 12_345);
    await chmod(closed, AS_ROOT ? 0o700 : 0);
    expectFailure(await place.run(['archive', closed, '--json'], { prefix: WITHOUT_PRIVILEGE }), {
      exit: 1,
      code: 'folder-unreadable',
    });
    await chmod(closed, 0o700);
  });

  it('file and folder inside that may not be read: the rest is archived, exit 3', async () => {
    await writeTree(folder, { 'secret.txt': 'secret', 'closed/inside.txt': 'inside' });
    for (const path of ['secret.txt', 'closed']) {
      if (AS_ROOT) await chown(join(folder, path), 12_345, 12_345);
      await chmod(join(folder, path), AS_ROOT ? 0o700 : 0);
    }
    const outcome = await place.run(['archive', folder, '--json'], { prefix: WITHOUT_PRIVILEGE });
    expectFailure(outcome, { exit: 3, code: 'partly-done' });
    expect(outcome.messages).toContainEqual(
      expect.objectContaining({ messageType: 'summary', snapshotPublished: true, filesFailed: 2 }),
    );
    const warnings = outcome.messages.filter(({ messageType }) => messageType === 'warning');
    expect(warnings.map((warning) => JSON.stringify(warning)).join()).toMatch(
      /secret\.txt.*closed|closed.*secret\.txt/s,
    );
    for (const path of ['secret.txt', 'closed']) await chmod(join(folder, path), 0o700);
    await place.summary(['restore', place.folder('restored')]);
    expect(Object.keys(await describeTree(place.folder('restored'))).sort()).toEqual(['a.txt', 'b/c.txt', 'large.bin']);
  });

  it('full disk of the spool: nothing published, and the next run goes on', async () => {
    const spool = place.folder('spool');
    await mkdir(spool);
    await writeTree(folder, { 'huge.bin': bytesOf('huge', 24 * 1024 * 1024) });
    const outcome = await place.run(['archive', folder, '--spool', spool, '--json'], {
      prefix: onSmallDisk(spool, '4m'),
    });
    expectFailure(outcome, { exit: 1, code: 'disk-full' });
    await place.summary(['archive', folder]);
    await everyFileRestored('all');
  });

  it('full disk of a restore: no half file, and the next run goes on', async () => {
    const target = place.folder('target');
    await mkdir(target);
    await writeTree(folder, { 'huge.bin': bytesOf('huge', 24 * 1024 * 1024) });
    await place.summary(['archive', folder]);
    const outcome = await place.run(['restore', target, '--json'], { prefix: onSmallDisk(target, '8m') });
    expectFailure(outcome, { exit: 1, code: 'disk-full' });
    await everyFileRestored('target');
  });

  it.each([
    ['corrupt', (bytes: Uint8Array) => bytes.map((byte, index) => (index === bytes.length >> 1 ? byte ^ 0x40 : byte))],
    ['truncated', (bytes: Uint8Array) => bytes.slice(0, bytes.length - 3)],
  ])('%s shard: named, with the command that mends it, and left as it is', async (_what, damage) => {
    await place.summary(['archive', folder]);
    const damaged = await inStorage(async (container) => {
      const page = await container.listPage('chunk-index/');
      for (const { name, contentType } of page.blobs) {
        const shard = await container.read(name, 1024 * 1024);
        if (shard === undefined) throw new Error(`${name} is gone`);
        await container.write(name, damage(shard.bytes), {
          condition: { etag: shard.etag },
          contentType: contentType ?? 'application/octet-stream',
        });
      }
      return await everyBlob(container);
    });
    const restore = await place.run(['restore', place.folder('nothing'), '--json']);
    expectFailure(restore, { exit: 14, code: 'chunk-index-corrupt' });
    expect(lastMessage(restore).message).toMatch(/chunk-index\/[0-9a-f]{2}/);
    expect(lastMessage(restore).next).toMatch(/repair/i);
    await writeTree(folder, { 'changed.txt': 'changed' });
    const archive = await place.run(['archive', folder, '--json'], { env: { HOME: place.folder('cold-home') } });
    expectFailure(archive, { exit: 14, code: 'chunk-index-corrupt' });
    const shards = (blobs: string[]): string[] => blobs.filter((blob) => /^(?:chunk-index|snapshots)\//.test(blob));
    expect(shards(await inStorage(everyBlob))).toEqual(shards(damaged));
  });
});
