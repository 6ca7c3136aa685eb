import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Azurite, startAzurite } from '../../src/local/azurite.ts';
import { type RestartingHost, startRestartingHost } from '../support/restarting-host.ts';
import { Workplace } from './support/agent.ts';
import { bytesOf, describeTree, writeTree } from './support/trees.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

let place: Workplace;
let azurite: Azurite;
let host: RestartingHost;

beforeEach(async () => {
  place = await Workplace.create();
  azurite = await startAzurite({ directory: undefined });
});

afterEach(async () => {
  await host.stop();
  await azurite.stop();
  await place.close();
});

async function startHost(settings: Record<string, string>, commitsPerLife: number): Promise<void> {
  const { connectionString } = azurite;
  host = await startRestartingHost({
    appDirectory: ROOT,
    stateDirectory: place.folder('hub'),
    commitsPerLife,
    settings: { TASK_HUB: `test${randomUUID().slice(0, 8)}`, ...settings },
    secrets: {
      ARIUS_STORAGE_CONNECTION_STRING: connectionString,
      AzureWebJobsStorage: connectionString,
      DurableStorage: connectionString,
    },
  });
}

/** Archives twice, and once more without a change; restores both versions. */
async function archivesAndRestores(): Promise<void> {
  const service = ['--url', host.url, '--token', host.functionKey];
  const folder = place.folder('photos');
  await writeTree(folder, {
    'large.bin': bytesOf('large', 2 * 1024 * 1024 + 1),
    ...Object.fromEntries(Array.from({ length: 24 }, (_, n) => [`many/${n % 5}/file-${n}.txt`, `number ${n}\n`])),
  });
  const before = await describeTree(folder);
  const first = await place.summary(['archive', folder, ...service]);
  expect(first).toMatchObject({ snapshotPublished: true, filesFailed: 0 });
  await writeTree(folder, { 'many/0/file-0.txt': 'changed\n', 'new.txt': 'new\n' });
  const after = await describeTree(folder);
  const second = await place.summary(['archive', folder, ...service]);
  expect(second).toMatchObject({ snapshotPublished: true, filesNew: 2 });
  const unchanged = await place.summary(['archive', folder, ...service]);
  expect(unchanged).toMatchObject({ snapshotPublished: false, bytesUploaded: 0 });

  await place.summary(['restore', place.folder('newest'), ...service]);
  expect(await describeTree(place.folder('newest'))).toEqual(after);
  await place.summary(['restore', place.folder('oldest'), '--snapshot', '1', ...service]);
  expect(await describeTree(place.folder('oldest'))).toEqual(before);
}

describe('archiving and restoring through a service', () => {
  it('whose activities run twice and whose starts race', async () => {
    await startHost(
      { LOCAL_HOST_DUPLICATE_ACTIVITIES: '0.3', LOCAL_HOST_RACY_STARTS_MS: '2000' },
      Number.MAX_SAFE_INTEGER,
    );
    await archivesAndRestores();
    expect(host.restarts()).toBe(0);
  });

  it('that is killed in the middle of every operation', async () => {
    await startHost({}, 40);
    await archivesAndRestores();
    expect(host.restarts()).toBeGreaterThanOrEqual(3);
  });
});
