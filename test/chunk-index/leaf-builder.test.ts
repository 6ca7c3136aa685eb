import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutLeaves, type LeafItem, type LeafSource } from '../../src/chunk-index/leaf-builder.ts';
import { parseContentHash } from '../../src/hashing/hashes.ts';
import { MAX_SHARD_ENTRY_COUNT } from '../../src/limits.ts';
import { entries, entryOf } from './world.ts';

interface SplitVector {
  readonly root: string;
  readonly hashes: string;
  readonly entries: number;
  readonly limit: number;
  readonly shards: { name: string; count: number }[];
}

const vectors = JSON.parse(readFileSync('test/vectors/chunk-index-routing.json', 'utf8')) as { splits: SplitVector[] };

/** Counts how far the descent reads ahead of what it has given away. */
class Source implements LeafSource<LeafItem> {
  given = 0;
  readonly #hashes: readonly string[];

  constructor(hashes: readonly string[]) {
    this.#hashes = hashes;
  }

  async next(): Promise<LeafItem | undefined> {
    const next = this.#hashes[this.given];
    if (next === undefined) {
      return undefined;
    }
    this.given += 1;
    return { entry: entryOf(parseContentHash(next)) };
  }
}

async function leavesOf(prefix: string, hashes: readonly string[], max: number): Promise<[string, string[]][]> {
  const leaves: [string, string[]][] = [];
  for await (const leaf of cutLeaves(prefix, new Source(hashes), max)) {
    leaves.push([leaf.prefix, leaf.items.map((item) => item.entry.contentHash)]);
  }
  return leaves;
}

/** The rule as it is written down: more than the maximum is split sixteen-way, recursively; empty ranges give nothing. */
function naiveLeaves(prefix: string, hashes: readonly string[], max: number): [string, string[]][] {
  const inside = hashes.filter((hash) => hash.startsWith(prefix));
  if (inside.length <= max) {
    return inside.length === 0 ? [] : [[prefix, inside]];
  }
  return [...'0123456789abcdef'].flatMap((digit) => naiveLeaves(prefix + digit, inside, max));
}

function vectorHashes({ root, hashes }: SplitVector): string[] {
  const sha = (n: number): string => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(n);
    return createHash('sha256').update(bytes).digest('hex');
  };
  const forced = /^"(..)" \+ .* in 0\.\.(\d+)$/.exec(hashes);
  const all =
    forced === null
      ? Array.from({ length: 40_000 }, (_, n) => sha(n)).filter((hash) => hash.startsWith(root))
      : Array.from({ length: Number(forced[2]) + 1 }, (_, n) => root + sha(n).slice(2));
  return all.sort();
}

describe('the leaves of a sorted stream', () => {
  it.each(vectors.splits)('follow the vector: $entries entries of $root, at most $limit', async (vector) => {
    const hashes = vectorHashes(vector);
    expect(hashes).toHaveLength(vector.entries);
    const leaves = await leavesOf(vector.root, hashes, vector.limit);
    expect(leaves.map(([name, inside]) => ({ name, count: inside.length }))).toEqual(vector.shards);
  });

  it('LC-10: a shard is split above 1024 entries, not at 1024', async () => {
    expect(MAX_SHARD_ENTRY_COUNT).toBe(1024);
    const hashes = entries(1025, 'aa').map((entry) => entry.contentHash);
    expect(await leavesOf('aa', hashes.slice(1), MAX_SHARD_ENTRY_COUNT)).toHaveLength(1);
    expect(await leavesOf('aa', hashes, MAX_SHARD_ENTRY_COUNT)).toHaveLength(16);
  });

  it('LS-16: only the hashes inside a prefix count for it', async () => {
    const inside = entries(4, 'aa3').map((entry) => entry.contentHash);
    const outside = entries(9, 'aa4').map((entry) => entry.contentHash);
    const leaves = await leavesOf('aa', [...inside, ...outside], 4);
    expect(leaves[0]).toEqual(['aa3', inside]);
    expect(leaves.slice(1).every(([name]) => name.startsWith('aa4') && name.length > 3)).toBe(true);
  });

  it('equal a naive model', async () => {
    // Few digits make deep and lopsided trees.
    const hashText = fc
      .array(fc.constantFrom('0', '1', '7', 'f'), { minLength: 6, maxLength: 6 })
      .map((digits) => `aa${digits.join('')}`.padEnd(64, '0'));
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(hashText, { maxLength: 80 }),
        fc.integer({ min: 1, max: 12 }),
        async (hashes, max) => {
          const ascending = hashes.sort();
          expect(await leavesOf('aa', ascending, max)).toEqual(naiveLeaves('aa', ascending, max));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('invariant 7: never more than one entry above a leaf is held, whatever the size', async () => {
    const source = new Source(entries(20_000, 'aa').map((entry) => entry.contentHash));
    let taken = 0;
    let heldMax = 0;
    for await (const leaf of cutLeaves('aa', source, 64)) {
      heldMax = Math.max(heldMax, source.given - taken);
      taken += leaf.items.length;
    }
    expect(taken).toBe(20_000);
    expect(heldMax).toBe(65);
  });

  it('goes down to a single hash when it must', async () => {
    const twins = ['0', '1'].map((last) => `aa${'5'.repeat(61)}${last}`);
    expect((await leavesOf('aa', twins, 1)).map(([name]) => name)).toEqual(twins);
  });

  it('refuses entries out of order, twice, or outside the prefix', async () => {
    const [first = '', second = ''] = entries(2, 'aa').map((entry) => entry.contentHash as string);
    await expect(leavesOf('aa', [second, first], 4)).rejects.toThrow(/not behind/);
    await expect(leavesOf('aa', [first, first], 4)).rejects.toThrow(/not behind/);
    await expect(leavesOf('aa', [first, `ab${'0'.repeat(62)}`], 4)).rejects.toThrow(/outside/);
  });
});
