import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseFileTreeHash } from '../../src/hashing/hashes.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { SNAPSHOT_DECODED_BYTES_MAX } from '../../src/limits.ts';
import {
  parseSnapshot,
  parseSnapshotName,
  resolveSnapshotName,
  type SnapshotManifest,
  serializeSnapshot,
  snapshotNameOf,
} from '../../src/repository/snapshot.ts';
import { parseTimestamp } from '../../src/repository/timestamps.ts';
import { base64, vectors } from '../support/bytes.ts';

const file = vectors('snapshots.json');
const ROOT = parseFileTreeHash('15'.repeat(32));
const manifest: SnapshotManifest = {
  timestampTicks: parseTimestamp('2026-03-22T15:00:00.1234567Z'),
  rootHash: ROOT,
  fileCount: 7,
  originalSize: 123_456_789_012,
  ariusVersion: '0.1.0',
};

function jsonOf(snapshot: SnapshotManifest): string {
  return new TextDecoder().decode(serializeSnapshot(snapshot));
}

describe('the published snapshots', () => {
  it.each(
    file.cases as {
      blob: string;
      json: string;
      passphrase: string;
      blobBase64: string;
      plaintextRepositoryBlobBase64: string;
    }[],
  )('SN-07: $blob', async (vector) => {
    const snapshot = parseSnapshot(Buffer.from(vector.json));
    expect(jsonOf(snapshot)).toBe(vector.json);
    expect(`snapshots/${snapshotNameOf(snapshot.timestampTicks)}`).toBe(vector.blob);
    const bodies = [
      [createBodyCodec(new Passphrase(vector.passphrase)), vector.blobBase64],
      [createBodyCodec(undefined), vector.plaintextRepositoryBlobBase64],
    ] as const;
    for (const [codec, body] of bodies) {
      expect(parseSnapshot(await codec.decode(base64(body), SNAPSHOT_DECODED_BYTES_MAX))).toEqual(snapshot);
    }
  });

  it.each(file.resolution.cases as { version: string | null; result: string | null }[])(
    'SN-13: version $version is $result',
    ({ version, result }) => {
      expect(resolveSnapshotName(file.resolution.names, version ?? 'latest') ?? null).toBe(result);
    },
  );
});

describe('a snapshot', () => {
  const text = fc.string({ unit: 'grapheme' });
  const anySnapshot: fc.Arbitrary<SnapshotManifest> = fc.record(
    {
      timestampTicks: fc.bigInt({ min: 0n, max: parseTimestamp('9999-12-31T23:59:59Z') }),
      rootHash: fc.constant(ROOT),
      fileCount: fc.nat(),
      originalSize: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      ariusVersion: text,
      source: text,
      runId: fc.uuid(),
    },
    { requiredKeys: ['timestampTicks', 'rootHash', 'fileCount', 'originalSize', 'ariusVersion'] },
  );

  it('SN-01 SN-02: comes back as it was written, plain and sealed', async () => {
    const codecs = [createBodyCodec(undefined), createBodyCodec(new Passphrase('p'))];
    await fc.assert(
      fc.asyncProperty(anySnapshot, fc.constantFrom(...codecs), async (snapshot, codec) => {
        const body = await codec.encode(serializeSnapshot(snapshot));
        expect(parseSnapshot(await codec.decode(body, SNAPSHOT_DECODED_BYTES_MAX))).toEqual(snapshot);
      }),
    );
  });

  it('SN-03: holds the root hash as a text, and our properties behind those of the format', () => {
    const json = JSON.parse(jsonOf({ ...manifest, source: 'nas:/photos', runId: 'r' }));
    expect(json.rootHash).toBe(ROOT);
    expect(Object.keys(json)).toEqual([
      'timestamp',
      'rootHash',
      'fileCount',
      'originalSize',
      'ariusVersion',
      'source',
      'runId',
    ]);
    expect(Object.keys(JSON.parse(jsonOf(manifest)))).toHaveLength(5);
  });

  it('ignores properties it does not know, also ours with another meaning', () => {
    const json = JSON.parse(jsonOf(manifest));
    expect(parseSnapshot(Buffer.from(JSON.stringify({ ...json, source: 7, more: [1] })))).toEqual(manifest);
  });

  it.each(['timestamp', 'rootHash', 'fileCount', 'originalSize', 'ariusVersion'])(
    'is corrupt without a good %s',
    (key) => {
      const json = JSON.parse(jsonOf(manifest));
      for (const value of [undefined, null, -1, '', {}].filter((wrong) => !(key === 'ariusVersion' && wrong === ''))) {
        const wrong = Buffer.from(JSON.stringify({ ...json, [key]: value }));
        expect(() => parseSnapshot(wrong)).toThrow(expect.objectContaining({ code: 'blob-corrupt' }));
      }
    },
  );

  it.each(['', '[]', 'null', '{', '\ufeff'])('is corrupt when it is %j', (body) => {
    expect(() => parseSnapshot(Buffer.from(body))).toThrow(expect.objectContaining({ code: 'blob-corrupt' }));
  });

  it('is not written with counts that cannot be', () => {
    expect(() => serializeSnapshot({ ...manifest, fileCount: -1 })).toThrow(RangeError);
    expect(() => serializeSnapshot({ ...manifest, originalSize: 1.5 })).toThrow(RangeError);
  });
});

describe('snapshot names', () => {
  it('SN-09: come back to the millisecond, in the order of time', () => {
    const ticks = fc.bigInt({ min: 0n, max: parseTimestamp('9999-12-31T23:59:59Z') });
    fc.assert(
      fc.property(ticks, ticks, (a, b) => {
        const nameA = snapshotNameOf(a);
        expect(parseSnapshotName(nameA)).toBe(a - (a % 10_000n));
        expect(snapshotNameOf(b) < nameA).toBe(b / 10_000n < a / 10_000n);
      }),
    );
  });

  it.each([
    '',
    'latest',
    'snapshots/2026-03-22T150000.000Z',
    '2026-03-22T15:00:00.000Z',
    '2026-03-22T150000Z',
    '2026-03-22T150000.0000Z',
    '2026-02-30T150000.000Z',
    '2026-03-22T250000.000Z',
    '2026-03-22t150000.000z',
    '2026-03-22T150000.000Z ',
  ])('SN-10: %j is not a name', (leaf) => {
    expect(parseSnapshotName(leaf)).toBeUndefined();
  });
});

describe('which snapshot is meant', () => {
  const names: string[] = file.resolution.names;

  it('SN-14: latest is the newest, and of none there is none', () => {
    expect(resolveSnapshotName(names, 'latest')).toBe(names[3]);
    expect(resolveSnapshotName([], 'latest')).toBeUndefined();
    expect(resolveSnapshotName([], '1')).toBeUndefined();
  });

  it('a short number is an index from 1, oldest first', () => {
    expect(resolveSnapshotName(names, '1')).toBe(names[0]);
    expect(resolveSnapshotName(names, '2')).toBe(names[1]);
    expect(resolveSnapshotName(names, '04')).toBe(names[3]);
    for (const none of ['0', '5', '999']) {
      expect(resolveSnapshotName(names, none)).toBeUndefined();
    }
  });

  it('four digits are a year when there is one, else an index', () => {
    expect(resolveSnapshotName(names, '2026')).toBe(names[2]);
    const many = Array.from({ length: 3000 }, (_, index) => snapshotNameOf(BigInt(index) * 10_000n));
    expect(resolveSnapshotName(many, '2500')).toBe(many[2499]);
    expect(resolveSnapshotName(many, '1970')).toBe(many[2999]);
  });
});
