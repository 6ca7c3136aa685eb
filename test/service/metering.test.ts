import { describe, expect, it } from 'vitest';
import { metered, meteredStorage, type RequestCounts } from '../../src/service/metering.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';

describe('counting storage requests', () => {
  it('counts each for the work that caused it, however they interleave, also when it fails', async () => {
    const storage = meteredStorage(new MemoryStorage());
    const container = storage.container('photos');
    await container.createIfMissing();
    const work = async (counts: RequestCounts, heads: number): Promise<void> =>
      await metered(counts, async () => {
        for (let index = 0; index < heads; index++) {
          await container.head(`${index}`);
        }
        await storage.table('missing').get('a', 'b');
      });
    const one: RequestCounts = {};
    const two: RequestCounts = {};
    const outcomes = await Promise.allSettled([work(one, 3), work(two, 5)]);
    await container.head('nobody counts this');
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected']);
    expect([one, two]).toEqual([
      { 'blob-head': 3, 'table-read': 1 },
      { 'blob-head': 5, 'table-read': 1 },
    ]);
  });
});
