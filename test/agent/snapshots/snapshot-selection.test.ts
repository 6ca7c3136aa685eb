import { describe, expect, it } from 'vitest';
import { PathFilter } from '../../../src/agent/files/path-filter.ts';
import { type SnapshotChoice, selectSnapshot } from '../../../src/agent/snapshots/snapshot-selection.ts';
import type { SnapshotInfo } from '../../../src/contract/schemas.ts';

function snapshots(...all: [name: string, source: string | null][]): SnapshotInfo[] {
  return all.map(([name, source]) => ({
    name,
    timestamp: '2026-01-01T00:00:00.000Z',
    rootHash: 'ab'.repeat(32),
    fileCount: 1,
    originalSize: 1,
    ariusVersion: 'x',
    source,
    runId: null,
  }));
}

const ONE: [string, string | null][] = [
  ['2026-03-22T150000.000Z', 'a'],
  ['2026-03-22T160000.000Z', 'a'],
  ['2026-04-01T000000.000Z', 'a'],
];
const TWO: [string, string | null][] = [
  ['2026-03-22T150000.000Z', 'a'],
  ['2026-03-22T160000.000Z', 'b'],
  ['2026-04-01T000000.000Z', 'a'],
  ['2026-05-01T000000.000Z', null],
];

const select = async (
  all: [string, string | null][],
  choice: SnapshotChoice,
  ...unreadable: string[]
): Promise<string> => {
  const listed = {
    snapshots: snapshots(...all),
    unreadable: unreadable.map((name) => ({ name, reason: 'it is truncated' })),
  };
  return selectSnapshot(listed, choice).name;
};

describe('selectSnapshot', () => {
  it.each([
    [{}, '2026-04-01T000000.000Z'],
    [{ snapshot: 'latest' }, '2026-04-01T000000.000Z'],
    [{ snapshot: '2026-03' }, '2026-03-22T160000.000Z'],
    [{ snapshot: '2026-03-22t15' }, '2026-03-22T150000.000Z'],
    [{ snapshot: '2026-03-22T150000.000z' }, '2026-03-22T150000.000Z'],
    [{ snapshot: '1' }, '2026-03-22T150000.000Z'],
    [{ snapshot: '3' }, '2026-04-01T000000.000Z'],
    [{ snapshot: '2026' }, '2026-04-01T000000.000Z'],
  ])('SN-13: of one source, %j is %s', async (choice, name) => {
    expect(await select(ONE, choice)).toBe(name);
  });

  it.each([{ snapshot: '0' }, { snapshot: '4' }, { snapshot: '2028' }, { snapshot: 'yesterday' }, { source: 'x' }])(
    'finds nothing for %j: exit 10',
    async (choice) => {
      await expect(select(ONE, choice)).rejects.toMatchObject({ code: 'snapshot-not-found', exitCode: 10 });
    },
  );

  it.each([{}, { snapshot: 'latest' }, { snapshot: '2026-03' }])(
    'does not guess between sources for %j',
    async (choice) => {
      await expect(select(TWO, choice)).rejects.toMatchObject({ code: 'snapshot-ambiguous', exitCode: 2 });
    },
  );

  it.each([
    [{ source: 'a' }, '2026-04-01T000000.000Z'],
    [{ source: 'b' }, '2026-03-22T160000.000Z'],
    [{ source: 'a', snapshot: '2026-03' }, '2026-03-22T150000.000Z'],
    [{ snapshot: '2' }, '2026-03-22T160000.000Z'],
    [{ snapshot: '4' }, '2026-05-01T000000.000Z'],
    [{ snapshot: '2026-03-22T160000.000Z' }, '2026-03-22T160000.000Z'],
    [{ snapshot: '2026-04' }, '2026-04-01T000000.000Z'],
  ])('of several, %j is %s', async (choice, name) => {
    expect(await select(TWO, choice)).toBe(name);
  });

  it('does not take a snapshot of another source than the named one', async () => {
    await expect(select(TWO, { snapshot: '2', source: 'a' })).rejects.toMatchObject({ code: 'snapshot-not-found' });
  });

  it('names the sources there are, and one without a name', async () => {
    await expect(select(TWO, {})).rejects.toMatchObject({
      message: expect.stringContaining('a, b, (no source)') as string,
    });
  });
});

describe('selectSnapshot beside snapshots that cannot be read', () => {
  const OLDEST = '2026-01-01T000000.000Z';
  const BETWEEN = '2026-03-31T000000.000Z';
  const NEWEST = '2026-06-01T000000.000Z';

  it.each<[SnapshotChoice, string]>([
    [{}, NEWEST],
    [{ snapshot: 'latest' }, NEWEST],
    [{ source: 'a' }, NEWEST],
    [{ snapshot: '2026' }, NEWEST],
    [{ snapshot: '2026-03' }, BETWEEN],
    [{ snapshot: '2026-06' }, NEWEST],
    [{ snapshot: NEWEST }, NEWEST],
    [{ snapshot: BETWEEN.toLowerCase() }, BETWEEN],
    [{ snapshot: OLDEST }, OLDEST],
  ])('refuses %j, which may mean %s', async (choice, named) => {
    await expect(select(ONE, choice, OLDEST, BETWEEN, NEWEST)).rejects.toMatchObject({
      code: 'blob-corrupt',
      exitCode: 1,
      message: expect.stringContaining(named) as string,
      next: expect.stringContaining('--snapshot') as string,
    });
  });

  it.each<[SnapshotChoice, string]>([
    [{}, '2026-04-01T000000.000Z'],
    [{ source: 'a' }, '2026-04-01T000000.000Z'],
    [{ snapshot: '2026' }, '2026-04-01T000000.000Z'],
  ])('takes for %j a newer one', async (choice, name) => {
    expect(await select(ONE, choice, OLDEST, BETWEEN)).toBe(name);
  });

  it.each<[SnapshotChoice, string]>([
    [{ snapshot: '3' }, '2026-04-01T000000.000Z'],
    [{ snapshot: '2026-03-22T150000.000Z' }, '2026-03-22T150000.000Z'],
    [{ snapshot: '2026-04' }, '2026-04-01T000000.000Z'],
    [{ snapshot: '2026-03-22' }, '2026-03-22T160000.000Z'],
  ])('takes for %j what it can only mean', async (choice, name) => {
    expect(await select(ONE, choice, OLDEST, BETWEEN, NEWEST)).toBe(name);
  });

  it('does not say that there is no snapshot when none can be read', async () => {
    await expect(select([], {}, NEWEST)).rejects.toMatchObject({
      code: 'blob-corrupt',
      message: expect.stringContaining(NEWEST) as string,
    });
    await expect(select([], { snapshot: '2028' }, NEWEST)).rejects.toMatchObject({ code: 'snapshot-not-found' });
  });
});

describe('PathFilter', () => {
  it('wants everything without a path, and with the path of the root', () => {
    for (const paths of [[], [''], ['/'], ['./'], ['.'], ['dir', '/']]) {
      const filter = new PathFilter(paths);
      expect(filter.wants('any/where')).toBe(true);
      expect(filter.enters('any')).toBe(true);
      expect(filter.unmet()).toEqual([]);
    }
  });

  it('RS-15: takes whole names, on the way down and below', () => {
    const filter = new PathFilter(['dir/sub', 'file']);
    expect(['dir', 'dir/sub', 'dir/sub/deep'].map((path) => filter.enters(path))).toEqual([true, true, true]);
    expect(['directory', 'dir/subway', 'other', 'di'].map((path) => filter.enters(path))).toEqual(Array(4).fill(false));
    expect(filter.wants('dir/sub/a')).toBe(true);
    expect(filter.wants('dir/subway')).toBe(false);
    expect(filter.wants('dir/a')).toBe(false);
    expect(filter.unmet()).toEqual(['file']);
    expect(filter.wants('file')).toBe(true);
    expect(filter.unmet()).toEqual([]);
  });

  it.each(['../x', 'a/../b', 'a//b', 'a\\b'])('refuses %s', (path) => {
    expect(() => new PathFilter([path])).toThrow('not a path');
  });
});
