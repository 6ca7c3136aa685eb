import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startAzurite } from '../../src/local/azurite.ts';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';
import { Workplace } from './support/agent.ts';
import { describeTree, writeTree } from './support/trees.ts';

/** Low enough that a few files with the same beginning of their hashes are split down to the fifth character. */
const ENTRIES_PER_SHARD_MAX = 4;
const SHARED_PREFIX = 'a7c5';
const SHARING_FILES = 12;

let place: Workplace;

beforeEach(async () => {
  place = await Workplace.create();
});

afterEach(async () => {
  await place.close();
});

/** Files whose hashes all begin alike, and others all over the place. */
function filesThatSplit(): Record<string, string> {
  const files: Record<string, string> = {};
  let found = 0;
  for (let number = 0; found < SHARING_FILES; number++) {
    const body = `content ${number}`;
    const sharing = createHash('sha256').update(body).digest('hex').startsWith(SHARED_PREFIX);
    if (sharing) found++;
    if (sharing || number < 200) files[`folder-${number % 5}/file-${number}.txt`] = body;
  }
  return files;
}

async function shardNames(): Promise<string[]> {
  const azurite = await startAzurite({ directory: `${place.stateDirectory}/storage` });
  try {
    const page = await azureStorage(azurite).container('default').listPage('chunk-index/');
    return page.blobs.map(({ name }) => name.slice('chunk-index/'.length));
  } finally {
    await azurite.stop();
  }
}

describe('shards split three levels deep', () => {
  it('through the function app, and a cold service still finds every entry', async () => {
    const env = { ARIUS_MAX_SHARD_ENTRY_COUNT: String(ENTRIES_PER_SHARD_MAX) };
    const folder = place.folder('files');
    await writeTree(folder, filesThatSplit());
    const summary = await place.summary(['archive', folder], { env });
    expect(summary).toMatchObject({ snapshotPublished: true });

    const names = await shardNames();
    const deep = names.filter((name) => name.startsWith(SHARED_PREFIX));
    expect(deep.length).toBeGreaterThan(1);
    expect(deep.every((name) => name.length >= 5)).toBe(true);
    // A legal partition: no shard lies above another.
    expect(names.filter((name) => names.some((other) => other !== name && other.startsWith(name)))).toEqual([]);

    await place.summary(['restore', place.folder('restored')], { env });
    expect(await describeTree(place.folder('restored'))).toEqual(await describeTree(folder));

    // Without the hash cache and on a service that has seen nothing, every content is found again.
    const home = place.folder('another-home');
    const again = await place.summary(['archive', folder, '--source', 'another:machine'], {
      env: { ...env, HOME: home },
    });
    expect(again).toMatchObject({ chunksUploaded: 0, tarsUploaded: 0, bytesUploaded: expect.any(Number) });
    expect(again.filesNew).toBe(0);
  });
});
