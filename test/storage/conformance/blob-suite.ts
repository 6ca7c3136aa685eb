import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AccessTier, BlobContainer, BlobWriteOptions, WriteResult } from '../../../src/storage/ports.ts';
import { type ConformanceSubject, codeOf, defined, freshName, type SubjectFactory } from './subject.ts';

const ABSENT: BlobWriteOptions = { condition: { absent: true }, contentType: 'application/octet-stream' };
const HOUR_MS = 60 * 60_000;
const TIERS: readonly AccessTier[] = ['hot', 'cool', 'cold', 'archive'];
/** Signatures count whole seconds, so one that ended a while ago is needed. */
const past = (): Date => new Date(Date.now() - 5000);
const inAnHour = (): Date => new Date(Date.now() + HOUR_MS);

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const blockId = (index: number): string => Buffer.from(`block-${String(index).padStart(4, '0')}`).toString('base64');

async function collect(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function etagOf(result: WriteResult): string {
  if (result.outcome !== 'written') {
    throw new Error('Expected the write to succeed');
  }
  return result.etag;
}

export function blobConformance(adapter: string, createSubject: SubjectFactory): void {
  describe(`blobs: ${adapter}`, () => {
    let subject: ConformanceSubject;
    let container: BlobContainer;

    beforeAll(async () => {
      subject = await createSubject();
    });
    afterAll(() => subject.stop());
    beforeEach(async () => {
      container = subject.storage.container(freshName());
      await container.createIfMissing();
    });

    async function write(name: string, text: string, options: Partial<BlobWriteOptions> = {}): Promise<string> {
      return etagOf(await container.write(name, bytes(text), { ...ABSENT, ...options }));
    }

    async function readText(name: string): Promise<string | undefined> {
      const found = await container.read(name, 1024);
      return found === undefined ? undefined : new TextDecoder().decode(found.bytes);
    }

    describe('containers', () => {
      it('says who created it, and whether it exists', async () => {
        const fresh = subject.storage.container(freshName());
        expect(await fresh.exists()).toBe(false);
        expect(await fresh.createIfMissing()).toBe(true);
        expect(await fresh.createIfMissing()).toBe(false);
        expect(await fresh.exists()).toBe(true);
      });

      it('treats blobs of a missing container as missing, but refuses to write or list there', async () => {
        const missing = subject.storage.container(freshName());
        expect(await missing.head('a')).toBeUndefined();
        expect(await missing.read('a', 10)).toBeUndefined();
        expect(await missing.openRead('a')).toBeUndefined();
        expect(await missing.delete('a', { etag: 'any' })).toBe('missing');
        expect(await codeOf(missing.write('a', bytes('x'), ABSENT))).toBe('not-found');
        expect(await codeOf(missing.listPage(''))).toBe('not-found');
      });

      it('lists containers by prefix', async () => {
        const prefix = freshName();
        for (const suffix of ['b', 'a']) {
          await subject.storage.container(`${prefix}-${suffix}`).createIfMissing();
        }
        const page = await subject.storage.listContainersPage(`${prefix}-`);
        expect(page).toEqual({ names: [`${prefix}-a`, `${prefix}-b`], continuation: undefined });
      });
    });

    describe('write and read', () => {
      it('blob layer: what was uploaded is downloaded, to the byte', async () => {
        const body = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251);
        const etag = etagOf(await container.write('dir/with space, ü and #?', body, ABSENT));
        const found = await container.read('dir/with space, ü and #?', body.byteLength);
        expect(found?.etag).toBe(etag);
        expect(Buffer.compare(found?.bytes ?? new Uint8Array(0), body)).toBe(0);
        const opened = await container.openRead('dir/with space, ü and #?');
        expect(opened?.properties).toMatchObject({ etag, contentLengthBytes: body.byteLength });
        expect(Buffer.compare(await collect(defined(opened).body), body)).toBe(0);
      });

      it('does not keep the buffer of the caller, nor hand out its own', async () => {
        const buffer = bytes('before');
        await container.write('kept', buffer, ABSENT);
        buffer.fill(0);
        const first = await container.read('kept', 10);
        first?.bytes.fill(0);
        expect(await readText('kept')).toBe('before');
      });

      it('writes and reads an empty blob', async () => {
        await write('empty', '');
        expect(await readText('empty')).toBe('');
        expect((await container.head('empty'))?.contentLengthBytes).toBe(0);
        expect(await collect(defined(await container.openRead('empty')).body)).toHaveLength(0);
      });

      it('blob layer: a missing blob is undefined, by every way of reading', async () => {
        expect(await container.head('missing')).toBeUndefined();
        expect(await container.read('missing', 10)).toBeUndefined();
        expect(await container.openRead('missing')).toBeUndefined();
      });

      it('refuses a body above the limit of the reader', async () => {
        await write('long', 'four');
        expect(await readText('long')).toBe('four');
        expect(await codeOf(container.read('long', 3))).toBe('blob-corrupt');
        expect((await container.read('long', 4))?.bytes).toHaveLength(4);
      });

      it('reads ranges: inside, across the end, behind it', async () => {
        await write('range', '0123456789');
        const inside = await container.openRead('range', { offsetBytes: 3, lengthBytes: 4 });
        expect(new TextDecoder().decode(await collect(defined(inside).body))).toBe('3456');
        expect(inside?.properties.contentLengthBytes).toBe(10);
        const across = await container.openRead('range', { offsetBytes: 8, lengthBytes: 100 });
        expect(new TextDecoder().decode(await collect(defined(across).body))).toBe('89');
        expect(await codeOf(container.openRead('range', { offsetBytes: 10, lengthBytes: 1 }))).toBe('bad-request');
      });

      it('CS-09: lets a reader leave a body at once or in the middle', async () => {
        await container.write('big', new Uint8Array(3_000_000), ABSENT);
        const unread = await container.openRead('big');
        await defined(unread).body[Symbol.asyncIterator]().return?.();
        const left = await container.openRead('big');
        for await (const piece of defined(left).body) {
          expect(piece.byteLength).toBeGreaterThan(0);
          break;
        }
        expect((await container.head('big'))?.contentLengthBytes).toBe(3_000_000);
      });

      it('keeps content type and metadata, and reports them from HEAD, GET and listing alike', async () => {
        const metadata = { arius_type: 'thin', original_size: '12', words: 'two words' };
        const etag = await write('facts', 'x', { contentType: 'application/x-arius', metadata });
        const expected = { etag, contentType: 'application/x-arius', metadata, contentLengthBytes: 1, name: 'facts' };
        expect(await container.head('facts')).toMatchObject(expected);
        expect((await container.openRead('facts'))?.properties).toMatchObject(expected);
        const listed = await container.listPage('facts', { includeMetadata: true });
        expect(listed.blobs[0]).toMatchObject(expected);
        expect((await container.listPage('facts')).blobs[0]?.metadata).toBeUndefined();
      });

      it('refuses metadata that would not come back as it was written', async () => {
        for (const metadata of [
          { Upper: 'x' },
          { empty: '' },
          { 'a-b': 'x' },
          { a: 'ü' },
          { a: ' x' },
          { a: 'x'.repeat(9000) },
        ]) {
          expect(await codeOf(container.write('bad', bytes('x'), { ...ABSENT, metadata }))).toBe('bad-request');
        }
        expect(await codeOf(container.write('', bytes('x'), ABSENT))).toBe('bad-request');
        expect(await codeOf(container.write('x'.repeat(1025), bytes('x'), ABSENT))).toBe('bad-request');
        expect((await container.listPage('')).blobs).toEqual([]);
      });
    });

    describe('conditions', () => {
      it('creates only what is absent', async () => {
        const etag = await write('once', 'first', { metadata: { a: '1' } });
        expect(await container.write('once', bytes('second'), ABSENT)).toEqual({ outcome: 'conflict' });
        expect(await readText('once')).toBe('first');
        expect(await container.head('once')).toMatchObject({ etag, metadata: { a: '1' } });
      });

      it('lets exactly one of 20 parallel conditional creates win', async () => {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, index) => container.write('race', bytes(`writer ${index}`), ABSENT)),
        );
        const winners = results.flatMap((result, index) => (result.outcome === 'written' ? [{ result, index }] : []));
        expect(winners).toHaveLength(1);
        expect(await readText('race')).toBe(`writer ${winners[0]?.index}`);
        expect((await container.head('race'))?.etag).toBe(etagOf(defined(winners[0]).result));
      });

      it('invariant 3: replaces exactly what was read, and metadata with it', async () => {
        const first = await write('shard', 'one', { metadata: { a: '1', b: '2' } });
        const second = await write('shard', 'two', { condition: { etag: first }, metadata: { c: '3' } });
        expect(second).not.toBe(first);
        const stale = await container.write('shard', bytes('three'), { ...ABSENT, condition: { etag: first } });
        expect(stale).toEqual({ outcome: 'conflict' });
        expect(await readText('shard')).toBe('two');
        expect((await container.head('shard'))?.metadata).toEqual({ c: '3' });
      });

      it('gives every write its own ETag, also of the same bytes', async () => {
        const first = await write('same', 'x');
        const second = await write('same', 'x', { condition: { etag: first } });
        const third = await write('same', 'x', { condition: { etag: second } });
        expect(new Set([first, second, third]).size).toBe(3);
        expect(`${first}${second}${third}`).not.toContain('"');
      });

      it('lets exactly one of 20 parallel replacements of one ETag win', async () => {
        const etag = await write('replace-race', 'old');
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            container.write('replace-race', bytes(`new ${index}`), { ...ABSENT, condition: { etag } }),
          ),
        );
        expect(results.filter((result) => result.outcome === 'written')).toHaveLength(1);
      });

      it('does not replace a blob that is gone', async () => {
        const etag = await write('gone', 'x');
        expect(await container.delete('gone', { etag })).toBe('deleted');
        const result = await container.write('gone', bytes('y'), { ...ABSENT, condition: { etag } });
        expect(result).toEqual({ outcome: 'conflict' });
        expect(await container.head('gone')).toBeUndefined();
      });

      it('invariant 3: deletes only with the ETag that was seen', async () => {
        const first = await write('delete', 'x');
        const second = await write('delete', 'y', { condition: { etag: first } });
        expect(await container.delete('delete', { etag: first })).toBe('changed');
        expect(await readText('delete')).toBe('y');
        expect(await container.delete('delete', { etag: second })).toBe('deleted');
        expect(await container.delete('delete', { etag: second })).toBe('missing');
      });
    });

    describe('listing', () => {
      it('blob layer: filters by prefix, in ordinal order', async () => {
        for (const name of ['b/2', 'a', 'b/10', 'B', 'b/1', 'c']) {
          await write(name, 'x');
        }
        expect((await container.listPage('b/')).blobs.map((blob) => blob.name)).toEqual(['b/1', 'b/10', 'b/2']);
        expect((await container.listPage('')).blobs.map((blob) => blob.name)).toEqual([
          'B',
          'a',
          'b/1',
          'b/10',
          'b/2',
          'c',
        ]);
        expect(await container.listPage('nothing')).toEqual({ blobs: [], continuation: undefined });
      });

      it('pages, and finds every blob that stayed, while others come and go', async () => {
        const names = Array.from({ length: 23 }, (_, index) => `p/${String(index).padStart(2, '0')}`);
        await Promise.all(names.map((name) => write(name, 'x')));
        const found: string[] = [];
        let continuation: string | undefined;
        let pages = 0;
        do {
          const page = await container.listPage('p/', {
            pageSize: 5,
            ...(continuation === undefined ? {} : { continuation }),
          });
          expect(page.blobs.length).toBeLessThanOrEqual(5);
          found.push(...page.blobs.map((blob) => blob.name));
          continuation = page.continuation;
          pages += 1;
          await write(`p/00-${pages}`, 'came later');
        } while (continuation !== undefined);
        expect(pages).toBe(5);
        expect(found).toEqual(names);
      });

      it('lists the ETag that HEAD reports', async () => {
        const etag = await write('listed', 'x');
        expect((await container.listPage('listed')).blobs[0]?.etag).toBe(etag);
      });
    });

    describe('tiers', () => {
      it.each(TIERS)('blob layer: applies the tier %s with the body', async (tier) => {
        await write(`tier-${tier}`, 'x', { tier });
        expect((await container.head(`tier-${tier}`))?.tier).toBe(tier);
        expect((await container.listPage(`tier-${tier}`)).blobs[0]?.tier).toBe(tier);
      });

      it('uses the default tier when none is named', async () => {
        await write('default', 'x');
        expect((await container.head('default'))?.tier).toBe('hot');
      });

      it('refuses to read an archived blob, but reports its properties', async () => {
        const etag = await write('archived', 'cold', { tier: 'archive', metadata: { arius_type: 'large' } });
        expect(await codeOf(container.read('archived', 10))).toBe('chunk-archived');
        expect(await codeOf(container.openRead('archived'))).toBe('chunk-archived');
        expect(await container.head('archived')).toMatchObject({
          etag,
          tier: 'archive',
          contentLengthBytes: 4,
          metadata: { arius_type: 'large' },
          archiveStatus: undefined,
        });
      });

      it('answers conflict, not an error, when a conditional create meets an archived blob', async () => {
        await write('archived', 'cold', { tier: 'archive' });
        expect(await container.write('archived', bytes('x'), ABSENT)).toEqual({ outcome: 'conflict' });
      });
    });

    describe('blocks', () => {
      it('makes a blob of blocks in the given order, with condition, metadata and tier in one request', async () => {
        await container.stageBlock('large', blockId(1), bytes('world'));
        await container.stageBlock('large', blockId(0), bytes('hello '));
        const committed = await container.commitBlocks('large', [blockId(0), blockId(1)], {
          condition: { absent: true },
          contentType: 'application/x-large',
          metadata: { arius_type: 'large' },
          tier: 'cool',
        });
        expect(await readText('large')).toBe('hello world');
        expect(await container.head('large')).toMatchObject({
          etag: etagOf(committed),
          contentType: 'application/x-large',
          metadata: { arius_type: 'large' },
          tier: 'cool',
          contentLengthBytes: 11,
        });
      });

      it('keeps blocks invisible until they are committed', async () => {
        await container.stageBlock('staged', blockId(0), bytes('x'));
        expect(await container.head('staged')).toBeUndefined();
        expect(await container.read('staged', 10)).toBeUndefined();
        expect((await container.listPage('')).blobs).toEqual([]);
      });

      it('does not commit over a blob that is there, which stays as it was', async () => {
        const etag = await write('taken', 'first');
        await container.stageBlock('taken', blockId(0), bytes('second'));
        expect(await container.commitBlocks('taken', [blockId(0)], ABSENT)).toEqual({ outcome: 'conflict' });
        expect(await readText('taken')).toBe('first');
        expect((await container.head('taken'))?.etag).toBe(etag);
      });

      it('commits over exactly the ETag that was read', async () => {
        const etag = await write('replaced', 'first');
        await container.stageBlock('replaced', blockId(0), bytes('second'));
        const stale = await container.commitBlocks('replaced', [blockId(0)], { ...ABSENT, condition: { etag: '0x0' } });
        expect(stale).toEqual({ outcome: 'conflict' });
        etagOf(await container.commitBlocks('replaced', [blockId(0)], { ...ABSENT, condition: { etag } }));
        expect(await readText('replaced')).toBe('second');
      });

      it('refuses to commit a block that was never staged', async () => {
        await container.stageBlock('holes', blockId(0), bytes('x'));
        const commit = container.commitBlocks('holes', [blockId(0), blockId(1)], ABSENT);
        expect(await codeOf(commit)).toBe('storage-failed');
        expect(await container.head('holes')).toBeUndefined();
      });

      it('blob layer: a second writer of the same name is told that the blob exists', async () => {
        for (const outcome of ['written', 'conflict']) {
          await container.stageBlock('twice', blockId(0), bytes('x'));
          expect((await container.commitBlocks('twice', [blockId(0)], ABSENT)).outcome).toBe(outcome);
        }
      });
    });

    describe('blocks from a URL', () => {
      it('copies ranges of a signed blob into another container', async () => {
        const source = subject.storage.container(freshName());
        await source.createIfMissing();
        await source.write('staging/upload 1', bytes('0123456789'), ABSENT);
        const url = await source.signedUrl('staging/upload 1', 'read', inAnHour());
        await container.stageBlockFromUrl('whole', blockId(0), url, { offsetBytes: 0, lengthBytes: 6 });
        await container.stageBlockFromUrl('whole', blockId(1), url, { offsetBytes: 6, lengthBytes: 4 });
        etagOf(await container.commitBlocks('whole', [blockId(0), blockId(1)], ABSENT));
        expect(await readText('whole')).toBe('0123456789');
      });

      it('refuses a source whose signature does not allow reading, or has ended', async () => {
        await write('source', 'x');
        for (const url of [
          await container.signedUrl('source', 'create', inAnHour()),
          await container.signedUrl('source', 'read', past()),
        ]) {
          const copy = container.stageBlockFromUrl('copy', blockId(0), url, { offsetBytes: 0, lengthBytes: 1 });
          expect(await codeOf(copy)).not.toContain('not an AriusError');
        }
        expect(await codeOf(container.commitBlocks('copy', [blockId(0)], ABSENT))).toBe('storage-failed');
      });
    });

    describe('signed URLs', () => {
      const put = { method: 'PUT', headers: { 'x-ms-blob-type': 'BlockBlob', 'if-none-match': '*' } } as const;

      it('invariant 8: a create-only URL uploads its blob once, with metadata and tier, and nothing else', async () => {
        const url = await container.signedUrl('chunks/new one', 'create', inAnHour());
        const headers = { ...put.headers, 'x-ms-meta-arius_type': 'large', 'x-ms-access-tier': 'Cool' };
        expect(await subject.plainRequest(url, { ...put, headers, body: bytes('body') })).toBe(201);
        expect(await readText('chunks/new one')).toBe('body');
        expect(await container.head('chunks/new one')).toMatchObject({
          metadata: { arius_type: 'large' },
          tier: 'cool',
        });
      });

      it('a create-only URL cannot overwrite, with or without a condition', async () => {
        await write('chunks/taken', 'first');
        const url = await container.signedUrl('chunks/taken', 'create', inAnHour());
        expect([403, 409, 412]).toContain(await subject.plainRequest(url, { ...put, body: bytes('second') }));
        const unconditional = { ...put, headers: { 'x-ms-blob-type': 'BlockBlob' } };
        expect(await subject.plainRequest(url, { ...unconditional, body: bytes('second') })).toBe(403);
        expect(await readText('chunks/taken')).toBe('first');
      });

      it('a create-only URL cannot read, delete, list or stage blocks, nor reach another name', async () => {
        await write('chunks/taken', 'first');
        const url = await container.signedUrl('chunks/taken', 'create', inAnHour());
        expect(await subject.plainRequest(url, { method: 'GET' })).toBe(403);
        expect(await subject.plainRequest(url, { method: 'HEAD' })).toBe(403);
        expect(await subject.plainRequest(url, { method: 'DELETE' })).toBe(403);
        const other = url.replace('chunks/taken', 'chunks/other').replace('chunks%2Ftaken', 'chunks%2Fother');
        expect(other).not.toBe(url);
        const block = `&comp=block&blockid=${encodeURIComponent(blockId(0))}`;
        expect(await subject.plainRequest(`${url}${block}`, { method: 'PUT', body: bytes('x') })).toBe(403);
        const listing = url.replace(/\/chunks(\/|%2F)taken/, '');
        expect(await subject.plainRequest(`${listing}&restype=container&comp=list`, { method: 'GET' })).toBe(403);
        expect(await readText('chunks/taken')).toBe('first');
      });

      it('a read URL reads, and cannot write', async () => {
        await write('chunks/read', 'x');
        const url = await container.signedUrl('chunks/read', 'read', inAnHour());
        expect(await subject.plainRequest(url, { method: 'GET' })).toBe(200);
        expect(await subject.plainRequest(url, { ...put, body: bytes('y') })).toBe(403);
      });

      it('a write URL stages blocks, which the service can commit', async () => {
        const url = await container.signedUrl('staging/1', 'write', inAnHour());
        const block = `&comp=block&blockid=${encodeURIComponent(blockId(0))}`;
        expect(await subject.plainRequest(`${url}${block}`, { method: 'PUT', body: bytes('staged') })).toBe(201);
        etagOf(await container.commitBlocks('staging/1', [blockId(0)], ABSENT));
        expect(await readText('staging/1')).toBe('staged');
      });

      it('a URL whose time is over is refused', async () => {
        await write('chunks/old', 'x');
        const read = await container.signedUrl('chunks/old', 'read', past());
        expect(await subject.plainRequest(read, { method: 'GET' })).toBe(403);
        const create = await container.signedUrl('chunks/never', 'create', past());
        expect(await subject.plainRequest(create, { ...put, body: bytes('x') })).toBe(403);
        expect(await container.head('chunks/never')).toBeUndefined();
      });
    });

    describe('expiringAt', () => {
      it('reaches every blob of the container before the deadline', async () => {
        const expiring = await container.expiringAt(inAnHour());
        const etag = etagOf(await expiring.write('shard', bytes('one'), { ...ABSENT, metadata: { a: '1' } }));
        expect(await expiring.write('shard', bytes('two'), ABSENT)).toEqual({ outcome: 'conflict' });
        expect((await expiring.listPage('')).blobs.map((blob) => blob.name)).toEqual(['shard']);
        expect(await expiring.head('shard')).toMatchObject({ etag, metadata: { a: '1' } });
        const replaced = await expiring.write('shard', bytes('two'), { ...ABSENT, condition: { etag } });
        expect(new TextDecoder().decode((await expiring.read('shard', 10))?.bytes)).toBe('two');
        expect(await expiring.delete('shard', { etag })).toBe('changed');
        expect(await expiring.delete('shard', { etag: etagOf(replaced) })).toBe('deleted');
        await expiring.stageBlock('blocks', blockId(0), bytes('x'));
        expect((await expiring.commitBlocks('blocks', [blockId(0)], ABSENT)).outcome).toBe('written');
        expect(await expiring.head('missing')).toBeUndefined();
      });

      it('is refused by storage for any request after the deadline', async () => {
        const etag = await write('shard', 'one');
        const expired = await container.expiringAt(past());
        const requests: readonly (() => Promise<unknown>)[] = [
          () => expired.write('new', bytes('x'), ABSENT),
          () => expired.write('shard', bytes('x'), { ...ABSENT, condition: { etag } }),
          () => expired.delete('shard', { etag }),
          () => expired.head('shard'),
          () => expired.read('shard', 10),
          () => expired.listPage(''),
          () => expired.stageBlock('new', blockId(0), bytes('x')),
          () => expired.commitBlocks('new', [], ABSENT),
        ];
        for (const request of requests) {
          expect(await codeOf(request())).toBe('not-allowed');
        }
        expect(await readText('shard')).toBe('one');
        expect(await container.head('new')).toBeUndefined();
      });

      it('never signs beyond its own deadline', async () => {
        await write('shard', 'one');
        const expired = await container.expiringAt(past());
        expect(await codeOf((await expired.expiringAt(inAnHour())).head('shard'))).toBe('not-allowed');
        const url = await expired.signedUrl('shard', 'read', inAnHour());
        expect(await subject.plainRequest(url, { method: 'GET' })).toBe(403);
      });

      it('does not reach the container itself', async () => {
        const expiring = await container.expiringAt(inAnHour());
        expect(await codeOf(expiring.exists())).toBe('not-allowed');
        expect(await codeOf(expiring.createIfMissing())).toBe('not-allowed');
      });
    });

    describe('lost messages', () => {
      let lossy: BlobContainer;

      beforeEach(() => {
        lossy = subject.lossy.container(container.name);
      });

      async function losing<T>(which: 'request' | 'response', call: () => Promise<T>): Promise<T> {
        const before = subject.loss.lost();
        if (which === 'request') {
          subject.loss.loseNextRequest();
        } else {
          subject.loss.loseNextResponse();
        }
        const result = await call();
        expect(subject.loss.lost()).toBeGreaterThan(before);
        return result;
      }

      it.each(['request', 'response'] as const)('a create whose %s is lost is written', async (which) => {
        const result = await losing(which, () =>
          lossy.write('lost', bytes('mine'), { ...ABSENT, metadata: { owner: '1' }, tier: 'cool' }),
        );
        expect((await container.head('lost'))?.etag).toBe(etagOf(result));
      });

      it.each(['request', 'response'] as const)('a replacement whose %s is lost is written', async (which) => {
        const etag = await write('lost', 'old');
        const result = await losing(which, () => lossy.write('lost', bytes('new'), { ...ABSENT, condition: { etag } }));
        expect((await container.head('lost'))?.etag).toBe(etagOf(result));
        expect(await readText('lost')).toBe('new');
      });

      it("a create whose response is lost, and was a conflict, stays one: another's blob is not ours", async () => {
        await write('lost', 'same length', { metadata: { owner: '1' } });
        for (const [text, owner] of [
          ['other bytes', '1'],
          ['same length', '2'],
        ] as const) {
          const result = await losing('response', () =>
            lossy.write('lost', bytes(text), { ...ABSENT, metadata: { owner } }),
          );
          expect(result).toEqual({ outcome: 'conflict' });
        }
      });

      it.each(['request', 'response'] as const)('a commit whose %s is lost is written', async (which) => {
        await lossy.stageBlock('lost', blockId(0), bytes('x'));
        const result = await losing(which, () => lossy.commitBlocks('lost', [blockId(0)], ABSENT));
        expect((await container.head('lost'))?.etag).toBe(etagOf(result));
      });

      it('a replacing commit whose response is lost is written, though its blocks are gone', async () => {
        const etag = await write('lost', 'old');
        await lossy.stageBlock('lost', blockId(0), bytes('new'));
        const result = await losing('response', () =>
          lossy.commitBlocks('lost', [blockId(0)], { ...ABSENT, condition: { etag } }),
        );
        expect((await container.head('lost'))?.etag).toBe(etagOf(result));
      });

      it("a commit whose response is lost, over another's blocks, is a conflict", async () => {
        await container.stageBlock('lost', blockId(7), bytes('theirs'));
        await container.commitBlocks('lost', [blockId(7)], ABSENT);
        await lossy.stageBlock('lost', blockId(0), bytes('theirs'));
        const result = await losing('response', () => lossy.commitBlocks('lost', [blockId(0)], ABSENT));
        expect(result).toEqual({ outcome: 'conflict' });
      });

      it.each(['request', 'response'] as const)('a delete whose %s is lost is deleted', async (which) => {
        const etag = await write('lost', 'x');
        expect(await losing(which, () => lossy.delete('lost', { etag }))).toBe('deleted');
        expect(await container.head('lost')).toBeUndefined();
      });

      it.each(['request', 'response'] as const)('a container whose creation lost its %s is ours', async (which) => {
        const fresh = subject.lossy.container(freshName());
        expect(await losing(which, () => fresh.createIfMissing())).toBe(true);
      });

      it("another's container is not ours, whatever is lost", async () => {
        expect(await losing('response', () => lossy.createIfMissing())).toBe(false);
      });

      it('a staged block whose response is lost is staged', async () => {
        await losing('response', () => lossy.stageBlock('lost', blockId(0), bytes('x')));
        etagOf(await container.commitBlocks('lost', [blockId(0)], ABSENT));
      });

      it('reading back works through an expiring container', async () => {
        const expiring = await lossy.expiringAt(inAnHour());
        const result = await losing('response', () => expiring.write('lost', bytes('mine'), ABSENT));
        expect(result.outcome).toBe('written');
      });
    });
  });
}
