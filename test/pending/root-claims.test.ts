import { describe, expect, it } from 'vitest';
import { ROOT_CLAIM_DURATION_MS, ROOT_CLAIM_MARGIN_MS } from '../../src/limits.ts';
import { World } from '../chunk-index/world.ts';

describe('a claim on a root', () => {
  it('excludes others, of the same name too, until it is given back', async () => {
    const world = await World.create();
    const now = world.clock.now();
    const claim = await world.pending.claimRoot('aa', 'one', now);
    expect(claim?.deadline).toEqual(new Date(now.getTime() + ROOT_CLAIM_DURATION_MS));
    expect(await world.pending.claimRoot('aa', 'one', now)).toBeUndefined();
    expect(await world.pending.claimRoot('aa', 'two', now)).toBeUndefined();
    expect(await world.pending.claimRoot('ab', 'two', now)).toBeDefined();
    if (claim !== undefined) await world.pending.releaseRoot(claim);
    expect(await world.pending.claimRoot('aa', 'two', now)).toBeDefined();
  });

  it('is taken over without asking once its deadline lies a margin behind, not before', async () => {
    const world = await World.create();
    await world.pending.claimRoot('aa', 'one', world.clock.now());
    world.clock.advance(ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS - 1);
    expect(await world.pending.claimRoot('aa', 'two', world.clock.now())).toBeUndefined();
    world.clock.advance(1);
    expect(await world.pending.claimRoot('aa', 'two', world.clock.now())).toBeDefined();
    expect(await world.pending.claimRoot('aa', 'three', world.clock.now())).toBeUndefined();
  });

  it('is renewed by its holder before the deadline, and by nobody else', async () => {
    const world = await World.create();
    const claim = await world.pending.claimRoot('aa', 'one', world.clock.now());
    if (claim === undefined) throw new Error('a claim');
    world.clock.advance(ROOT_CLAIM_DURATION_MS / 2);
    const renewed = await world.pending.renewClaim(claim, world.clock.now());
    expect(renewed?.deadline.getTime()).toBe(world.clock.now().getTime() + ROOT_CLAIM_DURATION_MS);
    expect(await world.pending.renewClaim(claim, world.clock.now())).toBeUndefined();
    world.clock.advance(ROOT_CLAIM_DURATION_MS);
    expect(renewed && (await world.pending.renewClaim(renewed, world.clock.now()))).toBeUndefined();
  });

  it('that was taken over cannot be given back by its first holder', async () => {
    const world = await World.create();
    const first = await world.pending.claimRoot('aa', 'one', world.clock.now());
    world.clock.advance(ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS);
    await world.pending.claimRoot('aa', 'two', world.clock.now());
    if (first !== undefined) await world.pending.releaseRoot(first);
    expect(await world.pending.claimRoot('aa', 'three', world.clock.now())).toBeUndefined();
  });

  it('is won by one of many', async () => {
    const world = await World.create();
    const now = world.clock.now();
    const claims = await Promise.all(Array.from({ length: 20 }, () => world.pending.claimRoot('aa', 'same', now)));
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
    world.clock.advance(ROOT_CLAIM_DURATION_MS + ROOT_CLAIM_MARGIN_MS);
    const later = world.clock.now();
    const next = await Promise.all(Array.from({ length: 20 }, () => world.pending.claimRoot('aa', 'same', later)));
    expect(next.filter((claim) => claim !== undefined)).toHaveLength(1);
  });
});
