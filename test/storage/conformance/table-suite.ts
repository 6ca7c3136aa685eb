import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RowOperation, RowQuery, RowValues, Table, WriteResult } from '../../../src/storage/ports.ts';
import { type ConformanceSubject, codeOf, defined, freshName, type SubjectFactory } from './subject.ts';

function etagOf(result: WriteResult): string {
  if (result.outcome !== 'written') {
    throw new Error('Expected the write to succeed');
  }
  return result.etag;
}

export function tableConformance(adapter: string, createSubject: SubjectFactory): void {
  describe(`tables: ${adapter}`, () => {
    let subject: ConformanceSubject;
    let table: Table;

    beforeAll(async () => {
      subject = await createSubject();
    });
    afterAll(() => subject.stop());
    beforeEach(async () => {
      table = subject.storage.table(freshName());
      await table.createIfMissing();
    });

    async function keys(query: RowQuery): Promise<string[]> {
      const page = await table.queryPage(query);
      return page.rows.map((row) => `${row.partitionKey}|${row.rowKey}`);
    }

    describe('rows', () => {
      it('creates a table as often as asked, and refuses requests on a missing one', async () => {
        await table.createIfMissing();
        const missing = subject.storage.table(freshName());
        expect(await codeOf(missing.get('p', 'r'))).toBe('not-found');
        expect(await codeOf(missing.insert('p', 'r', {}))).toBe('not-found');
        expect(await codeOf(missing.delete('p', 'r', await table.upsert('p', 'r', {})))).toBe('not-found');
        expect(await codeOf(missing.queryPage({}))).toBe('not-found');
        expect(await codeOf(missing.batch('p', [{ kind: 'insert', rowKey: 'r', values: {} }]))).toBe('not-found');
      });

      const values: RowValues = {
        text: "it's ü 😀 \u0001",
        empty: '',
        looksLikeNumber: '0012',
        looksLikeDate: '2026-01-01T00:00:00Z',
        yes: true,
        no: false,
        zero: 0,
        int32: -2_147_483_648,
        overInt32: 2_147_483_648,
        safe: Number.MAX_SAFE_INTEGER,
        fraction: 0.1,
        huge: 1.7976931348623157e308,
        tiny: 5e-324,
        big: 9_223_372_036_854_775_807n,
        negative: -9_223_372_036_854_775_808n,
        smallBig: 7n,
      };

      it('brings every value back as it was written, from a point read, a query and a batch', async () => {
        const etag = etagOf(await table.insert('p', 'single', values));
        expect(await table.get('p', 'single')).toEqual({ partitionKey: 'p', rowKey: 'single', etag, values });
        expect(await table.batch('p', [{ kind: 'insert', rowKey: 'batched', values }])).toEqual({ outcome: 'written' });
        expect((await table.queryPage({ partition: 'p' })).rows.map((row) => row.values)).toEqual([values, values]);
      });

      it('refuses what no table can hold, before asking', async () => {
        for (const bad of [
          { a: Number.NaN },
          { a: Number.POSITIVE_INFINITY },
          { a: 2n ** 63n },
          { 'a-b': 1 },
          { RowKey: 'x' },
        ]) {
          expect(await codeOf(table.insert('p', 'bad', bad))).toBe('bad-request');
          expect(await codeOf(table.batch('p', [{ kind: 'insert', rowKey: 'bad', values: bad }]))).toBe('bad-request');
        }
        for (const key of ['a/b', 'a\\b', 'a#b', 'a?b', 'a\nb']) {
          expect(await codeOf(table.insert(key, 'r', {}))).toBe('bad-request');
          expect(await codeOf(table.get('p', key))).toBe('bad-request');
        }
        expect(await keys({})).toEqual([]);
      });

      it('takes keys with quotes, spaces, percent signs and letters of any script', async () => {
        for (const key of ["o'clock", 'a b', '100%', 'ключ', 'a&b=c', '~claim', '%41']) {
          const etag = etagOf(await table.insert(key, key, { key }));
          expect(await table.get(key, key)).toEqual({ partitionKey: key, rowKey: key, etag, values: { key } });
          expect(await keys({ partition: key, rowFrom: key })).toEqual([`${key}|${key}`]);
          const next: RowOperation = { kind: 'replace', rowKey: key, values: { key: 'again' }, etag };
          expect(await table.batch(key, [next])).toEqual({ outcome: 'written' });
          const row = await table.get(key, key);
          expect(await table.batch(key, [{ kind: 'delete', rowKey: key, etag: defined(row).etag }])).toEqual({
            outcome: 'written',
          });
        }
      });

      it('inserts only what is absent: one of 20 parallel inserts wins', async () => {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, index) => table.insert('p', 'race', { index })),
        );
        expect(results.filter((result) => result.outcome === 'written')).toHaveLength(1);
        const winner = results.findIndex((result) => result.outcome === 'written');
        expect((await table.get('p', 'race'))?.values).toEqual({ index: winner });
      });

      it('replaces all values, only of the row that was read', async () => {
        const first = etagOf(await table.insert('p', 'r', { a: 1, b: 2 }));
        const second = etagOf(await table.replace('p', 'r', { c: 3 }, first));
        expect(second).not.toBe(first);
        expect(await table.replace('p', 'r', { d: 4 }, first)).toEqual({ outcome: 'conflict' });
        expect(await table.get('p', 'r')).toMatchObject({ etag: second, values: { c: 3 } });
        expect((await table.get('p', 'r'))?.values).not.toHaveProperty('a');
        expect(await table.replace('p', 'absent', {}, first)).toEqual({ outcome: 'conflict' });
      });

      it('upserts whatever is there', async () => {
        const first = await table.upsert('p', 'r', { a: 1 });
        expect((await table.get('p', 'r'))?.etag).toBe(first);
        const second = await table.upsert('p', 'r', { b: 2 });
        expect(await table.get('p', 'r')).toMatchObject({ etag: second, values: { b: 2 } });
        expect(second).not.toBe(first);
      });

      it('invariant 2: deletes only the row whose ETag was read', async () => {
        const first = await table.upsert('p', 'r', { a: 1 });
        const second = await table.upsert('p', 'r', { a: 1 });
        expect(await table.delete('p', 'r', first)).toBe('changed');
        expect(await table.delete('p', 'r', second)).toBe('deleted');
        expect(await table.delete('p', 'r', second)).toBe('missing');
        expect(await table.get('p', 'r')).toBeUndefined();
      });
    });

    describe('queries', () => {
      beforeEach(async () => {
        for (const [partition, row] of [
          ['b', '2'],
          ['a', '9'],
          ['b', '10'],
          ['A', '1'],
          ['b', '1'],
          ['c', '1'],
        ] as const) {
          await table.insert(partition, row, { partition, row });
        }
      });

      it('answers in ordinal order of partition and row key', async () => {
        expect(await keys({})).toEqual(['A|1', 'a|9', 'b|1', 'b|10', 'b|2', 'c|1']);
      });

      it('keeps to its bounds', async () => {
        expect(await keys({ partition: 'b' })).toEqual(['b|1', 'b|10', 'b|2']);
        expect(await keys({ partitionFrom: 'a', partitionTo: 'b' })).toEqual(['a|9', 'b|1', 'b|10', 'b|2']);
        expect(await keys({ partitionFrom: 'bb' })).toEqual(['c|1']);
        expect(await keys({ partitionTo: 'a' })).toEqual(['A|1', 'a|9']);
        expect(await keys({ partition: 'b', rowFrom: '10' })).toEqual(['b|10', 'b|2']);
        expect(await keys({ partition: 'b', rowAfter: '1', rowBefore: '2' })).toEqual(['b|10']);
        expect(await keys({ rowFrom: '2' })).toEqual(['a|9', 'b|2']);
        expect(await keys({ partition: 'nothing' })).toEqual([]);
      });

      it('returns the selected columns, and always keys and ETag', async () => {
        const whole = await table.get('b', '10');
        const selected = (await table.queryPage({ partition: 'b', rowFrom: '10', rowBefore: '2', select: ['row'] }))
          .rows;
        expect(selected).toEqual([{ partitionKey: 'b', rowKey: '10', etag: whole?.etag, values: { row: '10' } }]);
        const none = (await table.queryPage({ partition: 'b', rowFrom: '10', rowBefore: '2', select: [] })).rows;
        expect(none).toEqual([{ partitionKey: 'b', rowKey: '10', etag: whole?.etag, values: {} }]);
      });

      it('pages by continuation, within the bounds, over partitions', async () => {
        const found: string[] = [];
        let continuation: string | undefined;
        do {
          const page = await table.queryPage({
            partitionFrom: 'a',
            pageSize: 2,
            ...(continuation === undefined ? {} : { continuation }),
          });
          expect(page.rows.length).toBeLessThanOrEqual(2);
          found.push(...page.rows.map((row) => `${row.partitionKey}|${row.rowKey}`));
          continuation = page.continuation;
        } while (continuation !== undefined);
        expect(found).toEqual(['a|9', 'b|1', 'b|10', 'b|2', 'c|1']);
      });

      it('gives at most 1,000 rows a page, whatever is asked', async () => {
        for (let batch = 0; batch < 11; batch += 1) {
          await table.batch(
            'many',
            Array.from({ length: 100 }, (_, index) => ({
              kind: 'insert',
              rowKey: String(batch * 100 + index).padStart(5, '0'),
              values: {},
            })),
          );
        }
        const first = await table.queryPage({ partition: 'many', pageSize: 5000 });
        expect(first.rows).toHaveLength(1000);
        const rest = await table.queryPage({ partition: 'many', continuation: defined(first.continuation) });
        expect(rest.rows.map((row) => row.rowKey).at(0)).toBe('01000');
        expect(rest).toMatchObject({ continuation: undefined });
        expect(rest.rows).toHaveLength(100);
      });
    });

    describe('batches', () => {
      it('applies all kinds of operations at once', async () => {
        const replaced = await table.upsert('p', 'replaced', { a: 1 });
        const deleted = await table.upsert('p', 'deleted', {});
        const result = await table.batch('p', [
          { kind: 'insert', rowKey: 'inserted', values: { n: 1n } },
          { kind: 'upsert', rowKey: 'upserted', values: { t: "it's" } },
          { kind: 'replace', rowKey: 'replaced', values: { b: 2 }, etag: replaced },
          { kind: 'delete', rowKey: 'deleted', etag: deleted },
        ]);
        expect(result).toEqual({ outcome: 'written' });
        const rows = (await table.queryPage({ partition: 'p' })).rows.map((row) => [row.rowKey, row.values]);
        expect(rows).toEqual([
          ['inserted', { n: 1n }],
          ['replaced', { b: 2 }],
          ['upserted', { t: "it's" }],
        ]);
      });

      it('applies nothing when one condition fails, and says which', async () => {
        const stale = await table.upsert('p', 'present', { a: 1 });
        const etag = await table.upsert('p', 'present', { a: 1 });
        const upsert: RowOperation = { kind: 'upsert', rowKey: 'other', values: {} };
        const failing: readonly RowOperation[] = [
          { kind: 'insert', rowKey: 'present', values: {} },
          { kind: 'replace', rowKey: 'present', values: {}, etag: stale },
          { kind: 'replace', rowKey: 'absent', values: {}, etag },
          { kind: 'delete', rowKey: 'absent', etag },
        ];
        for (const operation of failing) {
          const expected = { outcome: 'conflict', failedIndex: 1 };
          expect(await table.batch('p', [upsert, operation])).toEqual(expected);
          expect(await table.batch('p', [operation, upsert])).toEqual({ outcome: 'conflict', failedIndex: 0 });
        }
        expect(await keys({})).toEqual(['p|present']);
        expect(await table.get('p', 'present')).toMatchObject({ etag, values: { a: 1 } });
      });

      it('invariant 2: does not delete a row that was rewritten since it was read', async () => {
        const stale = await table.upsert('p', 'rewritten', { a: 1 });
        const other = await table.upsert('p', 'untouched', {});
        const fresh = await table.upsert('p', 'rewritten', { a: 1 });
        const result = await table.batch('p', [
          { kind: 'delete', rowKey: 'untouched', etag: other },
          { kind: 'delete', rowKey: 'rewritten', etag: stale },
        ]);
        expect(result).toEqual({ outcome: 'conflict', failedIndex: 1 });
        expect((await table.get('p', 'rewritten'))?.etag).toBe(fresh);
        expect(await table.get('p', 'untouched')).toBeDefined();
      });

      it('takes 100 operations and refuses more, or the same row twice', async () => {
        const operations = Array.from({ length: 101 }, (_, index): RowOperation => {
          return { kind: 'upsert', rowKey: String(index), values: { index } };
        });
        expect(await codeOf(table.batch('p', operations))).toBe('bad-request');
        expect(await table.batch('p', operations.slice(1))).toEqual({ outcome: 'written' });
        expect((await table.queryPage({ partition: 'p' })).rows).toHaveLength(100);
        const repeated = defined(operations[0]);
        expect(await codeOf(table.batch('p', [repeated, repeated]))).toBe('bad-request');
        expect(await table.batch('p', [])).toEqual({ outcome: 'written' });
      });
    });

    describe('lost messages', () => {
      let lossy: Table;

      beforeEach(() => {
        lossy = subject.lossy.table(table.name);
      });

      const losses = ['loseNextRequest', 'loseNextResponse'] as const;

      it.each(losses)('%s: an insert is written', async (lose) => {
        subject.loss[lose]();
        const result = await lossy.insert('p', 'r', { attempt: 'mine', n: 1n });
        expect((await table.get('p', 'r'))?.etag).toBe(etagOf(result));
      });

      it("loseNextResponse: another's row is a conflict, since its values differ", async () => {
        await table.insert('p', 'r', { attempt: 'theirs' });
        subject.loss.loseNextResponse();
        expect(await lossy.insert('p', 'r', { attempt: 'mine' })).toEqual({ outcome: 'conflict' });
      });

      it.each(losses)('%s: a replacement is written', async (lose) => {
        const etag = await table.upsert('p', 'r', { a: 1 });
        subject.loss[lose]();
        const result = await lossy.replace('p', 'r', { a: 2 }, etag);
        expect(await table.get('p', 'r')).toMatchObject({ etag: etagOf(result), values: { a: 2 } });
      });

      it.each(losses)('%s: an upsert is written', async (lose) => {
        subject.loss[lose]();
        const etag = await lossy.upsert('p', 'r', { a: 1 });
        expect((await table.get('p', 'r'))?.etag).toBe(etag);
      });

      it.each(losses)('%s: a delete is deleted', async (lose) => {
        const etag = await table.upsert('p', 'r', {});
        subject.loss[lose]();
        expect(await lossy.delete('p', 'r', etag)).toBe('deleted');
      });

      it.each(losses)('%s: a batch is written', async (lose) => {
        const replaced = await table.upsert('p', 'replaced', { a: 1 });
        const deleted = await table.upsert('p', 'deleted', {});
        subject.loss[lose]();
        const result = await lossy.batch('p', [
          { kind: 'insert', rowKey: 'inserted', values: { attempt: 'mine' } },
          { kind: 'replace', rowKey: 'replaced', values: { a: 2 }, etag: replaced },
          { kind: 'delete', rowKey: 'deleted', etag: deleted },
        ]);
        expect(result).toEqual({ outcome: 'written' });
        expect(await keys({})).toEqual(['p|inserted', 'p|replaced']);
      });

      it('loseNextResponse: a batch that was refused stays refused', async () => {
        await table.insert('p', 'taken', { attempt: 'theirs' });
        subject.loss.loseNextResponse();
        const result = await lossy.batch('p', [
          { kind: 'upsert', rowKey: 'other', values: {} },
          { kind: 'insert', rowKey: 'taken', values: { attempt: 'mine' } },
        ]);
        expect(result).toEqual({ outcome: 'conflict', failedIndex: 1 });
        expect(await keys({})).toEqual(['p|taken']);
      });
    });
  });
}
