import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { startAzurite } from '../../src/local/azurite.ts';

/** Arguments and initial environment of every child of this process, as anyone of this user may read them. */
function childrenAsSeenFromOutside(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const [, parent] = /^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
        return Number(parent) === process.pid
          ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8')]
          : [];
      } catch {
        return [];
      }
    });
}

describe('what can be seen of a running Azurite', () => {
  afterEach(() => {
    delete process.env.ARIUS_PASSPHRASE;
  });

  it('is neither the passphrase of its parent nor its own account key', async () => {
    process.env.ARIUS_PASSPHRASE = 'stays-with-the-parent';
    const azurite = await startAzurite({ directory: undefined });
    try {
      const [, key = ''] = /AccountKey=([^;]+)/.exec(azurite.connectionString) ?? [];
      expect(key.length).toBeGreaterThan(40);
      const seen = childrenAsSeenFromOutside();
      expect(seen.some((text) => text.includes('azurite-child'))).toBe(true);
      for (const text of seen) {
        expect(text).not.toContain('stays-with-the-parent');
        expect(text).not.toContain(key);
      }
    } finally {
      await azurite.stop();
    }
  });
});
