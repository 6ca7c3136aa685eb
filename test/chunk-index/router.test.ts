import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundsOf, ChunkIndexRouter, childrenOf, isRoot, isShardPrefix, rootOf } from '../../src/chunk-index/router.ts';
import { type ContentHash, parseContentHash } from '../../src/hashing/hashes.ts';

interface RoutingVector {
  readonly existingShards: string[];
  readonly contentHash: string;
  readonly shard: string;
  readonly exists: boolean;
}

const vectors = JSON.parse(readFileSync('test/vectors/chunk-index-routing.json', 'utf8')) as {
  routing: RoutingVector[];
};

function hashAt(prefix: string): ContentHash {
  return parseContentHash(prefix.padEnd(64, '9'));
}

function route(existing: string[], prefix: string): string {
  const target = new ChunkIndexRouter(existing).resolveTarget(hashAt(prefix));
  return `${target.prefix} ${target.exists ? 'exists' : 'absent'}`;
}

describe('routing', () => {
  it.each(vectors.routing)('follows the vector: $contentHash among $existingShards is $shard', (vector) => {
    const target = new ChunkIndexRouter(vector.existingShards).resolveTarget(parseContentHash(vector.contentHash));
    expect(target).toEqual({ prefix: vector.shard, exists: vector.exists });
  });

  it('RT-01: a parent beside its child wins', () => {
    expect(route(['aa', 'aa3'], 'aa3f')).toBe('aa exists');
  });

  it('RT-02: without a parent the child answers', () => {
    expect(route(['aa3'], 'aa3f')).toBe('aa3 exists');
  });

  it('RT-03: in an empty root the root is the target', () => {
    expect(route(['ab', 'abc'], 'aa3f')).toBe('aa absent');
  });

  it('RT-04: in a split root an absent child is the target, not the root', () => {
    expect(route(['aa0', 'aa1'], 'aa5f')).toBe('aa5 absent');
  });

  it('RT-05: routing goes through a level that is missing', () => {
    expect(route(['aa3f'], 'aa3f')).toBe('aa3f exists');
    expect(route(['aa3f'], 'aa31')).toBe('aa31 absent');
    expect(route(['aa3f'], 'aa7f')).toBe('aa7 absent');
  });

  it('RT-06: a prefix has sixteen children, in hex order', () => {
    expect(childrenOf('a').join()).toBe('a0,a1,a2,a3,a4,a5,a6,a7,a8,a9,aa,ab,ac,ad,ae,af');
  });

  it('RT-07: a prefix of even length covers whole bytes', () => {
    expect(boundsOf('aa')).toEqual({ first: `aa${'0'.repeat(62)}`, last: `aa${'f'.repeat(62)}` });
  });

  it('RT-08, LS-15: a prefix of odd length covers half a byte, both ends included', () => {
    expect(boundsOf('aa3')).toEqual({ first: `aa3${'0'.repeat(61)}`, last: `aa3${'f'.repeat(61)}` });
  });

  it('RT-09: the root of a hash is its first two characters', () => {
    expect(rootOf(hashAt('a7'))).toBe('a7');
  });

  it('takes for a shard only what other clients do', () => {
    expect(['aa', 'aa3', '0'.repeat(64)].map(isShardPrefix)).toEqual([true, true, true]);
    expect(['a', 'AA', 'aag', 'aa-1', '', '0'.repeat(65)].map(isShardPrefix)).toEqual(Array(6).fill(false));
    expect(['aa', 'aaa', 'zz'].map(isRoot)).toEqual([true, false, false]);
  });
});

describe('what stands beside and below', () => {
  const router = new ChunkIndexRouter(['aa3', 'aa', 'aa30', 'ab1', 'ac', 'ab10f', 'ab10']);

  it('lists all shards on a path, the parent first', () => {
    expect(router.shardsOnPath(hashAt('aa30'))).toEqual(['aa', 'aa3', 'aa30']);
    expect(router.shardsOnPath(hashAt('aa4'))).toEqual(['aa']);
    expect(router.shardsOnPath(hashAt('ab10f'))).toEqual(['ab1', 'ab10', 'ab10f']);
    expect(router.shardsOnPath(hashAt('ad'))).toEqual([]);
  });

  it('lists the shards within a range, the range itself included', () => {
    expect(router.shardsWithin('aa')).toEqual(['aa', 'aa3', 'aa30']);
    expect(router.shardsWithin('ab')).toEqual(['ab1', 'ab10', 'ab10f']);
    expect(router.shardsWithin('ad')).toEqual([]);
  });

  it('names the shallowest shard of each interrupted split', () => {
    expect(router.interruptedSplits()).toEqual(['aa', 'ab1']);
    expect(router.isLegalPartition()).toBe(false);
    expect(new ChunkIndexRouter(['aa3', 'aa4', 'ac']).interruptedSplits()).toEqual([]);
    expect(new ChunkIndexRouter(['aa3', 'aa4', 'ac']).isLegalPartition()).toBe(true);
  });

  it('knows which shards share their range with no other', () => {
    expect(['aa', 'aa3', 'aa30', 'ab1', 'ac', 'ad'].map((prefix) => router.isAlone(prefix))).toEqual([
      false,
      false,
      false,
      false,
      true,
      false,
    ]);
  });
});

describe('against a naive model', () => {
  // Few digits, so that shards and hashes meet.
  const digit = fc.constantFrom('0', '1', 'f');
  const prefix = fc.array(digit, { minLength: 0, maxLength: 4 }).map((digits) => `a${'0'}${digits.join('')}`);
  const shards = fc.uniqueArray(prefix, { maxLength: 12 });
  const contentHash = fc.array(digit, { minLength: 5, maxLength: 5 }).map((digits) => hashAt(`a0${digits.join('')}`));

  function naiveTarget(existing: string[], hash: string): { prefix: string; exists: boolean } {
    const onPath = existing.filter((shard) => hash.startsWith(shard)).sort((a, b) => a.length - b.length);
    if (onPath[0] !== undefined) {
      return { prefix: onPath[0], exists: true };
    }
    let target = hash.slice(0, 2);
    while (existing.some((shard) => shard.startsWith(target))) {
      target = hash.slice(0, target.length + 1);
    }
    return { prefix: target, exists: false };
  }

  it('routes every hash the same', () => {
    fc.assert(
      fc.property(shards, contentHash, (existing, hash) => {
        const router = new ChunkIndexRouter(existing);
        expect(router.resolveTarget(hash)).toEqual(naiveTarget(existing, hash));
        expect(router.shardsOnPath(hash)).toEqual(existing.filter((shard) => hash.startsWith(shard)).sort());
      }),
      { numRuns: 2000 },
    );
  });

  it('never lets two targets nest, and finds every interrupted split', () => {
    fc.assert(
      fc.property(shards, contentHash, contentHash, (existing, left, right) => {
        const router = new ChunkIndexRouter(existing);
        const [one, other] = [router.resolveTarget(left).prefix, router.resolveTarget(right).prefix];
        expect(one === other || !(one.startsWith(other) || other.startsWith(one))).toBe(true);
        const nested = existing.filter((shard) =>
          existing.some((deeper) => deeper !== shard && deeper.startsWith(shard)),
        );
        const shallowest = nested.filter(
          (shard) => !nested.some((above) => above !== shard && shard.startsWith(above)),
        );
        expect(router.interruptedSplits()).toEqual(shallowest.sort());
      }),
      { numRuns: 1000 },
    );
  });
});
