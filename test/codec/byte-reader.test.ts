import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader } from '../../src/codec/byte-reader.ts';

async function* from(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

describe('ByteReader', () => {
  it('gives the bytes of the source in order, however they are cut and asked for', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array()),
        fc.infiniteStream(
          fc.record({ how: fc.constantFrom('read', 'peek', 'some'), count: fc.integer({ min: 1, max: 9 }) }),
        ),
        async (pieces, requests) => {
          const whole = Buffer.concat(pieces);
          const reader = new ByteReader(from(pieces));
          let offset = 0;
          for (const { how, count } of requests) {
            const expected = whole.subarray(offset, offset + count);
            if (how === 'peek') {
              expect(Buffer.compare(await reader.peek(count), expected)).toBe(0);
              continue;
            }
            const taken = how === 'read' ? await reader.read(count) : await reader.readSome(count);
            if (taken === undefined || taken.length === 0) {
              expect(offset).toBe(whole.length);
              return;
            }
            expect(taken.length).toBeLessThanOrEqual(count);
            expect(how === 'read' ? taken.length : count).toBe(how === 'read' ? expected.length : count);
            expect(Buffer.compare(taken, whole.subarray(offset, offset + taken.length))).toBe(0);
            offset += taken.length;
          }
        },
      ),
    );
  });

  it('hands on the rest, and tells an unfinished source to stop', async () => {
    let stopped = false;
    async function* source(): AsyncGenerator<Uint8Array> {
      try {
        yield Buffer.from('abc');
        yield Buffer.from('def');
        yield Buffer.from('ghi');
      } finally {
        stopped = true;
      }
    }
    const reader = new ByteReader(source());
    expect(Buffer.from(await reader.read(2)).toString()).toBe('ab');
    const rest = reader.rest();
    expect(Buffer.from((await rest.next()).value as Uint8Array).toString()).toBe('c');
    expect(Buffer.from((await rest.next()).value as Uint8Array).toString()).toBe('def');
    expect(stopped).toBe(false);
    await reader.close();
    expect(stopped).toBe(true);
    expect(await reader.readSome(10)).toBeUndefined();
  });
});
