import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Spool, spoolError } from '../../../src/agent/archive/spool.ts';
import { temporaryFolder } from '../support/run-command.ts';

async function* source(...pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const bytes of stream) {
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}

describe('Spool', () => {
  it('gives back what was written, whole or in part, as often as it is asked', async () => {
    const spool = new Spool(temporaryFolder());
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 10 }),
        fc.nat(20_000),
        fc.nat(20_000),
        async (pieces, offset, length) => {
          const whole = Buffer.concat(pieces);
          const body = await spool.write(source(...pieces));
          expect(body.lengthBytes).toBe(whole.byteLength);
          expect(body.md5).toBe(createHash('md5').update(whole).digest('base64'));
          expect((await bytesOf(body.open())).equals(whole)).toBe(true);
          expect((await bytesOf(body.open(offset, length))).equals(whole.subarray(offset, offset + length))).toBe(true);
          await body.remove();
        },
      ),
      { numRuns: 30 },
    );
  });

  it('leaves nothing when the source fails, and passes on its failure', async () => {
    const folder = temporaryFolder();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('half');
      throw new Error('source');
    }
    await expect(new Spool(folder).write(broken())).rejects.toThrow('source');
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([{ code: 'ENOSPC' }, { code: 'EDQUOT' }, { code: 'ERR_SQLITE_ERROR', errcode: 13 }])(
    'calls a full disk by its name: %j',
    (fields) => {
      expect(spoolError(Object.assign(new Error('x'), fields), '/spool')).toMatchObject({
        code: 'disk-full',
        exitCode: 1,
        message: expect.stringContaining('/spool') as string,
        next: expect.stringContaining('--spool') as string,
      });
    },
  );
});
