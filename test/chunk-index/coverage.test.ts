import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Coverage, type CoverageClaim } from '../../src/chunk-index/coverage.ts';
import type { IndexVersion } from '../../src/chunk-index/index-version.ts';
import { type ContentHash, parseContentHash } from '../../src/hashing/hashes.ts';

const A: IndexVersion = { epoch: 'a', layoutVersion: 3 };
const B: IndexVersion = { epoch: 'b', layoutVersion: 3 };
const OLDER: IndexVersion = { epoch: 'a', layoutVersion: 2 };

function present(prefix: string, version = A, etag = `etag of ${prefix}`): CoverageClaim {
  return { prefix, version, shards: [{ prefix, etag }] };
}

function empty(prefix: string, version = A): CoverageClaim {
  return { prefix, version, shards: [] };
}

function hashAt(prefix: string): ContentHash {
  return parseContentHash(prefix.padEnd(64, '9'));
}

function coverageOf(...claims: CoverageClaim[]): Coverage {
  const coverage = new Coverage();
  for (const claim of claims) {
    coverage.add(claim);
  }
  return coverage;
}

describe('coverage claims', () => {
  it('LS-09: promotion moves the claims at one version alone, present and empty ones, with their ETags', () => {
    const coverage = coverageOf(present('aa'), empty('ab'), present('ac', OLDER), present('ad', B));
    coverage.promote(A, B);
    expect(coverage.find(hashAt('aa'), B)).toEqual(present('aa', B));
    expect(coverage.find(hashAt('ab'), B)).toEqual(empty('ab', B));
    expect(coverage.find(hashAt('ac'), OLDER)).toEqual(present('ac', OLDER));
    expect(coverage.find(hashAt('ac'), B)).toBeUndefined();
    expect(coverage.find(hashAt('ad'), B)).toEqual(present('ad', B));
  });

  it('does not carry a claim over a change of layout', () => {
    const coverage = coverageOf(present('aa', OLDER));
    coverage.promote(OLDER, B);
    expect(coverage.find(hashAt('aa'), B)).toBeUndefined();
  });

  it('LS-19: a claim on a shorter prefix covers a hash, but only at its version', () => {
    const coverage = coverageOf(present('aa'));
    expect(coverage.find(hashAt('aa3f'), A)?.prefix).toBe('aa');
    expect(coverage.find(hashAt('aa3f'), B)).toBeUndefined();
    expect(coverage.find(hashAt('ab'), A)).toBeUndefined();
  });

  it('LS-20: all claims under a root are found, at the asked version only', () => {
    const coverage = coverageOf(present('aa1'), empty('aa2'), present('aa3', OLDER));
    const found = ['aa1', 'aa2', 'aa3', 'aa4'].map((prefix) => coverage.find(hashAt(prefix), A)?.prefix);
    expect(found).toEqual(['aa1', 'aa2', undefined, undefined]);
  });

  it('LS-21: a claim of five characters is found, one of eight too, and a deeper one is not kept', () => {
    const coverage = coverageOf(present('aa123'), present('ab123456'), present('ac1234567'));
    expect(coverage.find(hashAt('aa123'), A)?.prefix).toBe('aa123');
    expect(coverage.find(hashAt('ab123456'), A)?.prefix).toBe('ab123456');
    expect(coverage.find(hashAt('ac1234567'), A)).toBeUndefined();
  });

  it('LS-22: a new claim removes those above and below it; neighbours stay', () => {
    const deeper = coverageOf(present('aa'), present('aa3'));
    expect(deeper.find(hashAt('aa4'), A)).toBeUndefined();
    expect(deeper.find(hashAt('aa3'), A)?.prefix).toBe('aa3');
    const shallower = coverageOf(present('aa3'), present('aa30'), present('ab'), present('aa'));
    expect(shallower.find(hashAt('aa3'), A)?.prefix).toBe('aa');
    expect(shallower.find(hashAt('ab'), A)?.prefix).toBe('ab');
    const neighbours = coverageOf(present('aa3'), present('aa4'));
    expect(neighbours.find(hashAt('aa3'), A)?.prefix).toBe('aa3');
  });

  it('LS-22: never overlap, whatever is added, in whatever order', () => {
    const prefix = fc.array(fc.constantFrom('0', '1'), { minLength: 2, maxLength: 6 }).map((digits) => digits.join(''));
    fc.assert(
      fc.property(fc.array(prefix, { maxLength: 30 }), (prefixes) => {
        const coverage = coverageOf(...prefixes.map((each) => present(each)));
        // What is left according to the rule: the last claim on each path.
        const left = prefixes.filter(
          (each, index) => !prefixes.slice(index + 1).some((later) => later.startsWith(each) || each.startsWith(later)),
        );
        for (const each of prefixes) {
          const covering = left.filter((claim) => hashAt(each).startsWith(claim));
          expect(covering.length).toBeLessThanOrEqual(1);
          expect(coverage.find(hashAt(each), A)?.prefix).toBe(covering[0]);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('removes exactly the claim it was told to', () => {
    const coverage = coverageOf(present('aa'));
    const newer = present('aa', A, 'another ETag');
    coverage.add(newer);
    coverage.remove(present('aa'));
    expect(coverage.find(hashAt('aa'), A)).toBe(newer);
    coverage.remove(newer);
    expect(coverage.find(hashAt('aa'), A)).toBeUndefined();
  });

  it('invariant 7: keeps a bounded number of claims', () => {
    const coverage = new Coverage(3);
    for (const prefix of ['aa1', 'aa2', 'aa3', 'aa4']) {
      coverage.add(present(prefix));
    }
    expect(coverage.find(hashAt('aa4'), A)?.prefix).toBe('aa4');
    expect(coverage.find(hashAt('aa1'), A)).toBeUndefined();
  });
});
