import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Queue } from '../../../src/storage/ports.ts';
import { type ConformanceSubject, codeOf, defined, freshName, type SubjectFactory } from './subject.ts';

export function queueConformance(adapter: string, createSubject: SubjectFactory): void {
  describe(`queues: ${adapter}`, () => {
    let subject: ConformanceSubject;
    let queue: Queue;

    beforeAll(async () => {
      subject = await createSubject();
    });
    afterAll(() => subject.stop());
    beforeEach(async () => {
      queue = subject.storage.queue(freshName());
      await queue.createIfMissing();
    });

    it('is created as often as asked; a missing queue refuses', async () => {
      await queue.createIfMissing();
      const missing = subject.storage.queue(freshName());
      expect(await codeOf(missing.send('x'))).toBe('not-found');
      expect(await codeOf(missing.receive({ max: 1, invisibleSeconds: 1 }))).toBe('not-found');
    });

    it('delivers every text as it was sent, counts deliveries, and forgets what is deleted', async () => {
      const texts = ['plain', '{"repository":"photos"}', '<xml & "quotes">', 'ü 😀 \u0001 \n'];
      for (const text of texts) {
        await queue.send(text);
      }
      const received = await queue.receive({ max: 32, invisibleSeconds: 30 });
      expect(received.map((message) => message.text)).toEqual(texts);
      expect(received.map((message) => message.dequeueCount)).toEqual([1, 1, 1, 1]);
      for (const message of received) {
        await queue.delete(message);
      }
      expect(await queue.receive({ max: 1, invisibleSeconds: 1 })).toEqual([]);
    });

    it('gives a message to one receiver at a time, and again when it was not deleted', async () => {
      await queue.send('again');
      const [first] = await queue.receive({ max: 1, invisibleSeconds: 1 });
      expect(await queue.receive({ max: 1, invisibleSeconds: 1 })).toEqual([]);
      await sleep(1500);
      const [second] = await queue.receive({ max: 1, invisibleSeconds: 30 });
      expect(second).toMatchObject({ id: first?.id, text: 'again', dequeueCount: 2 });
      expect(second?.receipt).not.toBe(first?.receipt);
      // The receipt of the first delivery is old: the message stays with the second.
      await queue.delete(defined(first));
      await queue.delete(defined(second));
      await queue.delete(defined(second));
    });

    it('receives as many as are asked for, and no more than 32', async () => {
      await Promise.all(Array.from({ length: 40 }, (_, index) => queue.send(String(index))));
      expect(await queue.receive({ max: 3, invisibleSeconds: 30 })).toHaveLength(3);
      expect(await queue.receive({ max: 100, invisibleSeconds: 30 })).toHaveLength(32);
      expect(await queue.receive({ max: 100, invisibleSeconds: 30 })).toHaveLength(5);
    });

    it('keeps a delayed message back', async () => {
      await queue.send('later', { delaySeconds: 1 });
      expect(await queue.receive({ max: 1, invisibleSeconds: 1 })).toEqual([]);
      await sleep(1500);
      expect(await queue.receive({ max: 1, invisibleSeconds: 1 })).toHaveLength(1);
    });

    it.each(['loseNextRequest', 'loseNextResponse'] as const)('%s: a message arrives at least once', async (lose) => {
      subject.loss[lose]();
      await subject.lossy.queue(queue.name).send('wake');
      const received = await queue.receive({ max: 32, invisibleSeconds: 30 });
      expect(new Set(received.map((message) => message.text))).toEqual(new Set(['wake']));
    });
  });
}
