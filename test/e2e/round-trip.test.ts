import { rename, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from './support/agent.ts';
import { bytesOf, describeTree, hasLinks, writeOddTree, writeTree } from './support/trees.ts';

let place: Workplace;

beforeEach(async () => {
  place = await Workplace.create();
});

afterEach(async () => {
  await place.close();
});

describe.each(['plain', 'sealed'])('a %s repository', (kind) => {
  it('gives back every version of an odd folder, each command on a service of its own', async () => {
    const folder = place.folder('photos');
    const passphrase = place.folder('passphrase');
    await writeFile(passphrase, 'correct horse battery staple\n');
    const options = kind === 'sealed' ? ['--passphrase-file', passphrase] : [];
    await writeOddTree(folder);
    const before = await describeTree(folder);

    const first = await place.run(['archive', folder, '--json', ...options]);
    expect(first.code, first.stderr + first.stdout).toBe(0);
    const firstSummary = first.messages.at(-1);
    expect(firstSummary).toMatchObject({ messageType: 'summary', command: 'archive', snapshotPublished: true });
    // A link to a file is archived as the file; the other two are named, and left out.
    expect(firstSummary).toMatchObject({ filesScanned: Object.keys(before).length, filesExcluded: 2, emptyFolders: 1 });
    const warnings = first.messages.filter(({ messageType }) => messageType === 'warning');
    expect(warnings.map(({ path }) => path).sort()).toEqual(['broken link', 'link to a folder']);

    const again = await place.run(['archive', folder, '--json', ...options]);
    expect(again.messages.at(-1)).toMatchObject({
      snapshotPublished: false,
      snapshot: firstSummary?.snapshot,
      chunksUploaded: 0,
      tarsUploaded: 0,
      thinChunks: 0,
      filetreesUploaded: 0,
      bytesUploaded: 0,
      filesNew: 0,
    });

    await writeTree(folder, {
      'small.txt': 'a small file that grew\n',
      'new/big.bin': bytesOf('new', 3 * 1024 * 1024),
    });
    await rename(`${folder}/large.bin`, `${folder}/renamed.bin`);
    await rm(`${folder}/many/3`, { recursive: true });
    const after = await describeTree(folder);
    const second = await place.run(['archive', folder, '--json', ...options]);
    expect(second.messages.at(-1)).toMatchObject({ snapshotPublished: true, chunksUploaded: 2, tarsUploaded: 1 });

    const newest = await place.summary(['restore', place.folder('newest'), ...options]);
    expect(await describeTree(place.folder('newest'))).toEqual(after);
    expect(await hasLinks(place.folder('newest'))).toBe(false);
    expect(newest).toMatchObject({ command: 'restore', filesRestored: Object.keys(after).length, filesFailed: 0 });

    await place.summary(['restore', place.folder('oldest'), '--snapshot', '1', ...options]);
    expect(await describeTree(place.folder('oldest'))).toEqual(before);
  });
});
