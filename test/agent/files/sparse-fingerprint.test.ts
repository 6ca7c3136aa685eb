import { createHash } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fingerprintRegions,
  PassingFingerprint,
  readFingerprint,
} from '../../../src/agent/files/sparse-fingerprint.ts';
import vectors from '../../vectors/sparse-fingerprint.json' with { type: 'json' };
import { temporaryFolder } from '../support/run-command.ts';

/** The generator that the vectors name: `stream(label, n)`. */
function stream(label: string, length: number): Buffer {
  const parts: Buffer[] = [];
  for (let i = 0; i * 32 < length; i++) {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(i);
    parts.push(createHash('sha256').update(label).update(counter).digest());
  }
  return Buffer.concat(parts).subarray(0, length);
}

async function fingerprintOfFile(bytes: Uint8Array): Promise<string | undefined> {
  const path = join(temporaryFolder(), 'file');
  await writeFile(path, bytes);
  const handle = await open(path);
  try {
    return await readFingerprint(handle, bytes.byteLength);
  } finally {
    await handle.close();
  }
}

function fingerprintInPassing(bytes: Uint8Array, pieceBytes: number): string | undefined {
  const passing = new PassingFingerprint(bytes.byteLength);
  for (let offset = 0; offset < bytes.byteLength; offset += pieceBytes) {
    passing.update(bytes.subarray(offset, offset + pieceBytes), offset);
  }
  return passing.digest();
}

describe('sparse fingerprint', () => {
  it.each(vectors.fingerprints)('has the known regions and digest for $size bytes', async (vector) => {
    const bytes = stream('fp', vector.size);
    const regions = fingerprintRegions(vector.size).map(({ offsetBytes, lengthBytes }) => [offsetBytes, lengthBytes]);
    expect(regions).toEqual(vector.regions);
    expect(await fingerprintOfFile(bytes)).toBe(vector.fingerprint);
    expect(fingerprintInPassing(bytes, 65_536)).toBe(vector.fingerprint);
  });

  it.each(vectors.regionLayouts)('samples at most 64 regions, head and tail among them, of $size bytes', (vector) => {
    const regions = fingerprintRegions(vector.size).map(({ offsetBytes, lengthBytes }) => [offsetBytes, lengthBytes]);
    expect(regions).toHaveLength(vector.count);
    expect(regions[0]).toEqual(vector.first);
    expect(regions[1]).toEqual(vector.second);
    expect(regions.at(-1)).toEqual(vector.last);
  });

  it('is the same in passing as by seeking, whatever the pieces', async () => {
    const bytes = stream('pieces', 1_300_000);
    const sought = await fingerprintOfFile(bytes);
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 1_400_000 }), (pieceBytes) => {
        expect(fingerprintInPassing(bytes, pieceBytes)).toBe(sought);
      }),
      { numRuns: 30 },
    );
  });

  it('notices a change within a sample, and a change of size', async () => {
    const bytes = stream('change', 2_000_000);
    const changed = Buffer.from(bytes);
    changed[579_285 + 17] = (changed[579_285 + 17] ?? 0) ^ 1;
    expect(await fingerprintOfFile(changed)).not.toBe(await fingerprintOfFile(bytes));
    expect(await fingerprintOfFile(bytes.subarray(0, -1))).not.toBe(await fingerprintOfFile(bytes));
  });

  it('has none for a file that became shorter while it was read', async () => {
    const path = join(temporaryFolder(), 'file');
    await writeFile(path, stream('short', 1000));
    const handle = await open(path);
    try {
      expect(await readFingerprint(handle, 2000)).toBeUndefined();
    } finally {
      await handle.close();
    }
    expect(new PassingFingerprint(10).digest()).toBeUndefined();
  });
});
