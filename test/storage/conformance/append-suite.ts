import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AppendBlobs, BlobContainer } from '../../../src/storage/ports.ts';
import { type ConformanceSubject, codeOf, freshName, type SubjectFactory } from './subject.ts';

const SIZE_MAX = 1000;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

export function appendConformance(adapter: string, createSubject: SubjectFactory): void {
  describe(`append blobs: ${adapter}`, () => {
    let subject: ConformanceSubject;
    let container: BlobContainer;
    let logs: AppendBlobs;

    beforeAll(async () => {
      subject = await createSubject();
    });
    afterAll(() => subject.stop());
    beforeEach(async () => {
      container = subject.storage.container(freshName());
      await container.createIfMissing();
      logs = subject.storage.appendBlobs(container.name);
    });

    async function text(): Promise<string> {
      return new TextDecoder().decode((await container.read('log', SIZE_MAX))?.bytes);
    }

    it('is created once, empty', async () => {
      expect((await logs.createAppend('log')).outcome).toBe('written');
      await logs.append('log', bytes('x'), 0, SIZE_MAX);
      expect((await logs.createAppend('log')).outcome).toBe('conflict');
      expect(await text()).toBe('x');
      expect((await container.head('log'))?.tier).toBeUndefined();
    });

    it('appends at the position the writer believes in, and nowhere else', async () => {
      await logs.createAppend('log');
      const first = await logs.append('log', bytes('one'), 0, SIZE_MAX);
      expect(first).toEqual({ outcome: 'written', etag: (await container.head('log'))?.etag });
      expect((await logs.append('log', bytes('two'), 0, SIZE_MAX)).outcome).toBe('conflict');
      expect((await logs.append('log', bytes('two'), 99, SIZE_MAX)).outcome).toBe('conflict');
      expect((await logs.append('log', bytes('two'), 3, SIZE_MAX)).outcome).toBe('written');
      expect(await text()).toBe('onetwo');
    });

    it('does not grow above the size the writer allows', async () => {
      await logs.createAppend('log');
      expect((await logs.append('log', bytes('1234'), 0, 4)).outcome).toBe('written');
      expect((await logs.append('log', bytes('5'), 4, 4)).outcome).toBe('conflict');
      expect(await text()).toBe('1234');
    });

    it('lets exactly one of ten parallel appends at one position win', async () => {
      await logs.createAppend('log');
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, index) => logs.append('log', bytes(String(index)), 0, SIZE_MAX)),
      );
      const winners = results.flatMap((result, index) => (result.outcome === 'written' ? [String(index)] : []));
      expect(winners).toHaveLength(1);
      expect(await text()).toBe(winners[0]);
    });

    it('appends only to what exists and is an append blob', async () => {
      expect(await codeOf(logs.append('missing', bytes('x'), 0, SIZE_MAX))).toBe('not-found');
      await container.write('log', bytes(''), { condition: { absent: true }, contentType: 'text/plain' });
      expect((await logs.append('log', bytes('x'), 0, SIZE_MAX)).outcome).toBe('conflict');
      expect((await logs.createAppend('log')).outcome).toBe('conflict');
    });

    describe('lost messages', () => {
      it.each(['loseNextRequest', 'loseNextResponse'] as const)('%s: an append happens once', async (lose) => {
        const lossy = subject.lossy.appendBlobs(container.name);
        await logs.createAppend('log');
        await logs.append('log', bytes('one'), 0, SIZE_MAX);
        subject.loss[lose]();
        expect((await lossy.append('log', bytes('two'), 3, SIZE_MAX)).outcome).toBe('written');
        expect(await text()).toBe('onetwo');
      });

      it('an append whose response is lost, at a place where another wrote, is a conflict', async () => {
        const lossy = subject.lossy.appendBlobs(container.name);
        await logs.createAppend('log');
        await logs.append('log', bytes('theirs, longer'), 0, SIZE_MAX);
        subject.loss.loseNextResponse();
        expect((await lossy.append('log', bytes('ours'), 0, SIZE_MAX)).outcome).toBe('conflict');
        expect(await text()).toBe('theirs, longer');
      });

      it.each(['loseNextRequest', 'loseNextResponse'] as const)('%s: a creation happens', async (lose) => {
        subject.loss[lose]();
        expect((await subject.lossy.appendBlobs(container.name).createAppend('log')).outcome).toBe('written');
        expect(await text()).toBe('');
      });
    });
  });
}
