import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findEntry, parseShard, serializeShard } from '../../src/chunk-index/shard.ts';
import { formatShardLine, parseShardLine, ShardFormatError } from '../../src/chunk-index/shard-line.ts';
import { type BodyCodec, createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseChunkHash, parseContentHash } from '../../src/hashing/hashes.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { isLargeEntry, type ShardEntry } from '../../src/repository/shard-entry.ts';
import type { AccessTier } from '../../src/storage/ports.ts';
import { entries, entryOf, hash } from './world.ts';

interface VectorEntry {
  readonly contentHash: string;
  readonly chunkHash: string;
  readonly originalSize: number;
  readonly chunkSize: number;
  readonly tier: string;
}

const vectors = JSON.parse(readFileSync('test/vectors/chunk-index-shards.json', 'utf8')) as {
  shard: {
    entries: VectorEntry[];
    text: string;
    textSha256: string;
    passphrase: string;
    blobBase64: string;
    plaintextRepositoryBlobBase64: string;
  };
  lineParsing: { line: string; result: VectorEntry | 'skip' | 'error' }[];
};

const TIERS: readonly AccessTier[] = ['hot', 'cool', 'cold', 'archive'];
const LIMIT = 1_000_000;

function entryOfVector(vector: VectorEntry): ShardEntry {
  return {
    contentHash: parseContentHash(vector.contentHash),
    chunkHash: parseChunkHash(vector.chunkHash),
    originalSize: vector.originalSize,
    chunkSize: vector.chunkSize,
    tier: vector.tier.toLowerCase() as AccessTier,
  };
}

function sorted(list: readonly ShardEntry[]): ShardEntry[] {
  return [...list].sort((left, right) => (left.contentHash < right.contentHash ? -1 : 1));
}

function member(n: number, tier: AccessTier = 'cool'): ShardEntry {
  return entryOf(hash(n), { chunkHash: parseChunkHash(hash(n + 1_000)), originalSize: 12, chunkSize: 70_000, tier });
}

function parseText(text: string, prefix = ''): ShardEntry[] {
  return parseShard(prefix, Buffer.from(text));
}

describe('the vectors', () => {
  const expected = sorted(vectors.shard.entries.map(entryOfVector));

  it('are written to the byte', () => {
    const text = serializeShard('', expected);
    expect(Buffer.from(text).toString()).toBe(vectors.shard.text);
    expect(createHash('sha256').update(text).digest('hex')).toBe(vectors.shard.textSha256);
  });

  it('are read from both stored forms', async () => {
    const sealed = createBodyCodec(new Passphrase(vectors.shard.passphrase));
    const plain = createBodyCodec(undefined);
    const sealedText = await sealed.decode(Buffer.from(vectors.shard.blobBase64, 'base64'), LIMIT);
    const plainText = await plain.decode(Buffer.from(vectors.shard.plaintextRepositoryBlobBase64, 'base64'), LIMIT);
    expect(parseShard('', sealedText)).toEqual(expected);
    expect(parseShard('', plainText)).toEqual(expected);
  });

  it.each(vectors.lineParsing)('judge the line "$line"', ({ line, result }) => {
    if (result === 'error') {
      expect(() => parseShardLine(line)).toThrow(ShardFormatError);
    } else {
      expect(parseShardLine(line)).toEqual(result === 'skip' ? undefined : entryOfVector(result));
    }
  });
});

describe('a line', () => {
  it.each(TIERS)('SF-01: the entry of a tar member has five fields and survives, tier %s', (tier) => {
    const entry = member(1, tier);
    const line = formatShardLine(entry);
    expect(line.split(' ')).toHaveLength(5);
    expect(parseShardLine(line)).toEqual(entry);
  });

  it.each(TIERS)('SF-02, SF-03: the entry of a large chunk has exactly four fields and survives, tier %s', (tier) => {
    const entry = entryOf(hash(1), { tier });
    const line = formatShardLine(entry);
    expect(line).toBe(`${entry.contentHash} 2000000 1000000 ${TIERS.indexOf(tier) + 1}`);
    expect(parseShardLine(line)).toEqual(entry);
  });

  it('SF-04: four fields: the chunk hash is the content hash', () => {
    expect(parseShardLine(`${hash(1)} 10 5 1`)?.chunkHash).toBe(hash(1));
  });

  it('SF-05: tiers are 1 to 4, others are refused', () => {
    expect([1, 2, 3, 4].map((tier) => parseShardLine(`${hash(1)} 10 5 ${tier}`)?.tier)).toEqual(TIERS);
    for (const tier of ['0', '5', '-1', '', 'hot']) {
      expect(() => parseShardLine(`${hash(1)} 10 5 ${tier}`)).toThrow(ShardFormatError);
    }
  });

  it('SF-06, SF-07, SF-08: large is what has equal hashes, and that alone decides the number of fields', () => {
    expect(isLargeEntry(entryOf(hash(1)))).toBe(true);
    expect(isLargeEntry(member(1))).toBe(false);
    // Five fields with equal hashes are the same entry, and are written with four.
    const entry = parseShardLine(`${hash(1)} ${hash(1)} 10 5 4`);
    expect(entry === undefined ? '' : formatShardLine(entry)).toBe(`${hash(1)} 10 5 4`);
  });

  it('SF-09: blank lines and comments are ignored', () => {
    expect(parseText(`\n   \n# a comment\n${hash(1)} 10 5 1\n\n`)).toHaveLength(1);
    expect(() => parseText(` # not at the beginning\n`)).toThrow(ShardFormatError);
  });

  it('SF-10: any other number of fields, and tier 9, are refused', () => {
    for (const line of ['x', `${hash(1)} 10`, `${hash(1)} 10 5`, `${hash(1)} ${hash(2)} 1 2 3 4`, `${hash(1)} 1 2 9`]) {
      expect(() => parseText(line)).toThrow(ShardFormatError);
    }
  });

  it('SF-14: a short hash is refused', () => {
    expect(() => parseShardLine(`${hash(1).slice(1)} 10 5 1`)).toThrow(ShardFormatError);
    expect(() => parseShardLine(`${hash(1)} ${hash(2).slice(1)} 10 5 1`)).toThrow(ShardFormatError);
  });

  it('refuses sizes that are negative, too large to be exact, or no integers; a sign alone is tolerated', () => {
    for (const size of ['-1', '9007199254740992', '99999999999999999999', '1.5', '1e3', '0x10', '']) {
      expect(() => parseShardLine(`${hash(1)} ${size} 5 1`)).toThrow(ShardFormatError);
      expect(() => parseShardLine(`${hash(1)} 5 ${size} 1`)).toThrow(ShardFormatError);
    }
    expect(parseShardLine(`${hash(1)} +10 -0 1`)).toMatchObject({ originalSize: 10, chunkSize: 0 });
    expect(parseShardLine(`${hash(1)} 9007199254740991 0 1`)?.originalSize).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('a shard', () => {
  const list = sorted([...entries(20, 'aa'), entryOf(hash(90, 'aa'), { chunkHash: parseChunkHash(hash(5)) })]);

  it('SF-11: survives being written and read', () => {
    expect(parseShard('aa', serializeShard('aa', list))).toEqual(list);
  });

  it('SF-12, SF-13: takes lines in any order, and of one hash the last', () => {
    const [first, second] = [entryOf(hash(1), { chunkSize: 1 }), entryOf(hash(1), { chunkSize: 2 })];
    const text = [entryOf(hash(3)), first, entryOf(hash(2)), second].map(formatShardLine).join('\r\n');
    expect(parseText(text)).toEqual(sorted([entryOf(hash(3)), entryOf(hash(2)), second]));
  });

  it('SF-15: plain, as bytes, survives', async () => {
    expect(await throughBytes(createBodyCodec(undefined))).toEqual(list);
  });

  it('SF-16: plain, as a stream, survives', async () => {
    expect(await throughStreams(createBodyCodec(undefined))).toEqual(list);
  });

  it('SF-17: sealed, as bytes, survives', async () => {
    expect(await throughBytes(createBodyCodec(new Passphrase('correct horse')))).toEqual(list);
  });

  it('SF-18: sealed, as a stream, survives', async () => {
    expect(await throughStreams(createBodyCodec(new Passphrase('correct horse')))).toEqual(list);
  });

  async function throughBytes(codec: BodyCodec): Promise<ShardEntry[]> {
    return parseShard('aa', await codec.decode(await codec.encode(serializeShard('aa', list)), LIMIT));
  }

  async function throughStreams(codec: BodyCodec): Promise<ShardEntry[]> {
    const body = codec.encodeStream(once(serializeShard('aa', list)));
    return parseShard('aa', await joined(codec.decodeStream(body, LIMIT)));
  }

  it('is read with LF, CRLF, CR and a byte order mark', () => {
    const lines = list.map(formatShardLine);
    for (const end of ['\n', '\r\n', '\r']) {
      expect(parseText(`\uFEFF${lines.join(end)}`, 'aa')).toEqual(list);
    }
  });

  it('refuses a hash outside its prefix, read and written', () => {
    const stray = [...list, entryOf(hash(1, 'ab'))];
    expect(() => serializeShard('aa', stray)).toThrow(/does not belong/);
    expect(() => parseShard('aa', serializeShard('', stray))).toThrow(/does not belong/);
  });

  it('is never written out of order or with a hash twice', () => {
    const [first, second] = list;
    if (first === undefined || second === undefined) throw new Error('two entries');
    expect(() => serializeShard('aa', [second, first])).toThrow(/order/);
    expect(() => serializeShard('aa', [first, first])).toThrow(/order/);
  });

  it('finds what it holds and nothing else', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 60 }), (count) => {
        const some = entries(count, 'a');
        for (const entry of some) {
          expect(findEntry(some, entry.contentHash)).toBe(entry);
        }
        expect(findEntry(some, hash(1_000, 'a'))).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function joined(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
