import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ArchiveContext, ArchiveCounters, Carrier } from '../../../src/agent/archive/archive-context.ts';
import { EntryRecorder } from '../../../src/agent/archive/entry-recorder.ts';
import { uploadLarge } from '../../../src/agent/archive/upload-large.ts';
import { type BodyCodec, createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';
import { archiveContext, type TestContext } from '../support/archive-context.ts';
import { ConnectionCut, type FakeService } from '../support/fake-service.ts';
import { startFakeService } from '../support/run-command.ts';

const CONTENT = Buffer.alloc(1_300_000, 'large');

interface Uploading extends TestContext {
  readonly service: FakeService;
  readonly name: string;
  upload(): Promise<void>;
}

async function uploading(options: Parameters<typeof archiveContext>[1] = {}): Promise<Uploading> {
  const service = await startFakeService();
  const test = await archiveContext(service, options);
  const { context } = test;
  writeFileSync(join(context.root, 'large'), CONTENT);
  const contentHash = context.hasher.contentHash(CONTENT);
  const carrier: Carrier = { fileId: 1, path: 'large', sizeBytes: CONTENT.length, contentHash, attempts: 1 };
  const recorder = new EntryRecorder(context.api, context.runId);
  return { ...test, service, name: `chunks/${contentHash}`, upload: () => uploadLarge(context, recorder, carrier) };
}

/** What the counters say at every request, which is what a display between them would show. */
function watch(service: FakeService, { counters }: ArchiveContext): ArchiveCounters[] {
  const seen: ArchiveCounters[] = [];
  const look = (): void => {
    seen.push({ ...counters });
  };
  service.after = look;
  return seen;
}

function expectNeverBack(seen: readonly ArchiveCounters[]): void {
  for (const [index, now] of seen.entries()) {
    for (const name of ['chunksUploaded', 'bytesUploaded', 'entriesRecorded'] as const) {
      expect(now[name]).toBeGreaterThanOrEqual(seen[index - 1]?.[name] ?? 0);
    }
  }
}

describe('uploadLarge', () => {
  it('CS-20: after a conflict counts what another writer stored as recorded, not as uploaded, and never counts back', async () => {
    const first = await uploading();
    await first.upload();
    expect(first.context.counters).toMatchObject({ chunksUploaded: 1, entriesRecorded: 1 });

    const second = await uploading();
    const stored = first.service.blobs.get(first.name);
    if (stored === undefined) throw new Error('the chunk is not there');
    second.service.blobs.set(second.name, stored);
    const seen = watch(second.service, second.context);
    await second.upload();
    expect(second.context.counters).toMatchObject({ chunksUploaded: 0, bytesUploaded: 0, entriesRecorded: 1 });
    expectNeverBack([...seen, second.context.counters]);
  });

  it('CS-20, CS-21, CS-22: an upload cut off on its way begins again at the first byte, and counts once', async () => {
    const { service, context, name, upload } = await uploading();
    const seen = watch(service, context);
    let cuts = 0;
    service.before = ({ kind }) => {
      if (kind === 'put' && cuts++ < 2) throw new ConnectionCut();
    };
    await upload();
    const body = service.blobs.get(name)?.body ?? Buffer.alloc(0);
    expect(cuts).toBe(3);
    expect(context.counters).toMatchObject({ chunksUploaded: 1, bytesUploaded: body.length, entriesRecorded: 1 });
    expectNeverBack([...seen, context.counters]);
    expect(Buffer.from(await context.codec.decode(body, CONTENT.length)).equals(CONTENT)).toBe(true);
  });

  describe.each([
    ['plain', undefined],
    ['sealed', new Passphrase('correct horse')],
  ])('of a %s repository', (_kind, passphrase) => {
    it.each<[string, (bytes: Buffer) => Buffer]>([
      [
        'a flipped bit',
        (bytes) => Buffer.concat([bytes.subarray(0, -9), Buffer.from([(bytes.at(-9) ?? 0) ^ 1]), bytes.subarray(-8)]),
      ],
      ['an end that is missing', (bytes) => bytes.subarray(0, -1)],
      ['something behind its end', (bytes) => Buffer.concat([bytes, Buffer.from([0])])],
      ['nothing at all', () => Buffer.alloc(0)],
    ])(
      'CS-23: a prepared body with %s is an error: nothing is uploaded, nothing recorded, nothing kept',
      async (_what, damage) => {
        const codec = damaging(createBodyCodec(passphrase), damage);
        const options = { overrides: { codec }, ...(passphrase === undefined ? {} : { passphrase }) };
        const { service, context, spoolFolder, upload } = await uploading(options);
        await expect(upload()).rejects.toMatchObject({
          code: 'internal',
          message: expect.stringContaining('does not decode'),
        });
        expect(service.names('')).toEqual([]);
        expect(service.count('put')).toBe(0);
        expect(service.entries.size).toBe(0);
        expect(context.counters).toMatchObject({ chunksUploaded: 0, bytesUploaded: 0, entriesRecorded: 0 });
        expect(readdirSync(spoolFolder)).toEqual([]);
      },
    );

    it('CS-23: a body that decodes to other bytes is an error as well', async () => {
      const real = createBodyCodec(passphrase);
      const codec: BodyCodec = {
        ...methodsOf(real),
        encodeStream: (plain) => real.encodeStream(withFirstByteChanged(plain)),
      };
      const options = { overrides: { codec }, ...(passphrase === undefined ? {} : { passphrase }) };
      const { service, upload } = await uploading(options);
      await expect(upload()).rejects.toMatchObject({
        code: 'internal',
        message: expect.stringContaining('does not decode'),
      });
      expect(service.names('')).toEqual([]);
      expect(service.entries.size).toBe(0);
    });
  });
});

function methodsOf(codec: BodyCodec): BodyCodec {
  return {
    sealed: codec.sealed,
    encode: (plain) => codec.encode(plain),
    decode: (body, decodedBytesMax) => codec.decode(body, decodedBytesMax),
    encodeStream: (plain) => codec.encodeStream(plain),
    decodeStream: (body, decodedBytesMax) => codec.decodeStream(body, decodedBytesMax),
  };
}

/** A codec whose encoder, or the memory or disk behind it, is faulty. */
function damaging(codec: BodyCodec, damage: (bytes: Buffer) => Buffer): BodyCodec {
  return {
    ...methodsOf(codec),
    async *encodeStream(plain) {
      const parts: Uint8Array[] = [];
      for await (const bytes of codec.encodeStream(plain)) parts.push(bytes);
      yield damage(Buffer.concat(parts));
    },
  };
}

async function* withFirstByteChanged(plain: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let first = true;
  for await (const bytes of plain) {
    const copy = Uint8Array.from(bytes);
    if (first) copy[0] = (copy[0] ?? 0) ^ 1;
    first = false;
    yield copy;
  }
}
