import { describe, expect, it } from 'vitest';
import { sealBuffer } from '../../src/codec/argcm1.ts';
import { type BodyCodec, createBodyCodec } from '../../src/codec/body-codec.ts';
import { BodyCorruptError } from '../../src/codec/errors.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import { base64, collected, inPieces, passphraseOf, vectors, withFlippedBit } from '../support/bytes.ts';

/**
 * Invariant 11, exhaustively: every published body, cut at every length and with every bit flipped, plain and sealed, as a
 * buffer and as a stream, is an error or gives the same bytes; never others.
 *
 * Two economies, both deterministic. A flip in the salt or the rounds of an ArGCM1 header costs a key derivation: in the
 * published bodies one bit of each of these bytes is flipped, and all of them in a copy sealed with one round. Of bodies
 * above 1 KiB the first and last bytes are flipped bit by bit, and one bit of every sixteenth byte between; with
 * ARIUS_TEST_EXHAUSTIVE=1 all of them.
 */

interface Body {
  readonly name: string;
  readonly passphrase: string | null;
  readonly body: Buffer;
}

const LIMIT = 1_000_000;
const EXHAUSTIVE_BYTES = process.env.ARIUS_TEST_EXHAUSTIVE === '1' ? Number.POSITIVE_INFINITY : 1024;
const EDGE_BYTES = 64;
const STRIDE_BYTES = 16;
const SALT_AND_ROUNDS = { from: 6, to: 26 };
const ROUNDS_OFFSET = 22;

interface ChunkVector {
  readonly name: string;
  readonly passphrase: string | null;
  readonly blobBase64: string;
  readonly frameBase64?: string;
  readonly gzipLegacyBlobBase64?: string;
  readonly plaintextRepositoryBlobBase64?: string;
}

function bodiesOf(file: string): Body[] {
  const cases: ChunkVector[] = vectors(file).cases;
  return cases.flatMap((vector, index) => {
    const { passphrase, blobBase64, frameBase64, gzipLegacyBlobBase64, plaintextRepositoryBlobBase64 } = vector;
    const plainForms = [frameBase64, gzipLegacyBlobBase64, plaintextRepositoryBlobBase64].filter(
      (form) => form !== undefined,
    );
    return [
      { name: `${file} ${vector.name ?? index}`, passphrase, body: base64(blobBase64) },
      ...plainForms.map((form) => ({
        name: `${file} ${vector.name ?? index}, plain`,
        passphrase: null,
        body: base64(form),
      })),
    ];
  });
}

const published = [
  'chunks-gcm.json',
  'chunks-plaintext.json',
  'tar-chunks.json',
  'filetrees.json',
  'snapshots.json',
].flatMap(bodiesOf);
const shard = vectors('chunk-index-shards.json').shard;
published.push(
  { name: 'shard', passphrase: shard.passphrase, body: base64(shard.blobBase64) },
  { name: 'shard, plain', passphrase: null, body: base64(shard.plaintextRepositoryBlobBase64) },
);
const legacy = bodiesOf('chunks-cbc-legacy.json');

describe('a damaged body is an error or the same bytes', () => {
  it.each(published)('AR-56, AR-57: $name, cut', async (vector) => {
    expect(await violations(vector, cuts(vector.body))).toEqual([]);
  });

  it.each(published)('AR-56, AR-57: $name, flipped', async (vector) => {
    expect(await violations(vector, flips(vector.body, vector.passphrase !== null))).toEqual([]);
  });

  it('invariant 11: every bit of a sealed header', async () => {
    const frame = base64(vectors('chunks-gcm.json').cases[0].frameBase64);
    const header = { salt: Buffer.alloc(16, 7), baseNonce: Buffer.alloc(12, 9), iterationCount: 1 };
    const body = Buffer.from(await sealBuffer(frame, new Passphrase('p'), header));
    const vector = { name: 'one round', passphrase: 'p', body };
    // Bits 21 to 23 of the rounds would take seconds each, and say nothing that bit 20 does not.
    const slow = [21, 22, 23].map((bit) => ROUNDS_OFFSET * 8 + bit);
    const bits = Array.from({ length: 38 * 8 }, (_, bit) => bit).filter((bit) => !slow.includes(bit));
    expect(
      await violations(
        vector,
        bits.map((bit) => ({ what: `bit ${bit}`, damaged: withFlippedBit(body, bit) })),
      ),
    ).toEqual([]);
  });

  // Salted__ has no integrity of its own. These bodies hold because of what is inside: gzip with its checksum and size.
  it.each(legacy)('invariant 11: $name, cut and flipped', async (vector) => {
    expect(await violations(vector, [...cuts(vector.body), ...flips(vector.body, false)])).toEqual([]);
  });
});

interface Damage {
  readonly what: string;
  readonly damaged: Uint8Array;
}

function* cuts(body: Buffer): Generator<Damage> {
  for (let length = 0; length < body.length; length += 1) {
    yield { what: `cut to ${length}`, damaged: body.subarray(0, length) };
  }
}

function* flips(body: Buffer, sealed: boolean): Generator<Damage> {
  for (let offset = 0; offset < body.length; offset += 1) {
    for (const bit of bitsToFlip(offset, body.length, sealed)) {
      yield { what: `bit ${bit} of byte ${offset}`, damaged: withFlippedBit(body, offset * 8 + bit) };
    }
  }
}

function bitsToFlip(offset: number, length: number, sealed: boolean): number[] {
  if (sealed && offset >= SALT_AND_ROUNDS.from && offset < SALT_AND_ROUNDS.to) {
    return [0];
  }
  if (length <= EXHAUSTIVE_BYTES || offset < EDGE_BYTES || offset >= length - EDGE_BYTES) {
    return [0, 1, 2, 3, 4, 5, 6, 7];
  }
  return offset % STRIDE_BYTES === 0 ? [(offset / STRIDE_BYTES) % 8] : [];
}

async function violations(vector: Body, damages: Iterable<Damage>): Promise<string[]> {
  const codec = createBodyCodec(passphraseOf(vector.passphrase));
  const plain = Buffer.from(await codec.decode(vector.body, LIMIT));
  const found: string[] = [];
  for (const { what, damaged } of damages) {
    for (const [how, decode] of Object.entries(readers(codec, damaged))) {
      const result = await decode().catch(onlyOurs);
      if (result !== undefined && Buffer.compare(result, plain) !== 0) {
        found.push(`${how}, ${what}: ${result.length} bytes`);
      }
    }
  }
  return found;
}

function readers(codec: BodyCodec, body: Uint8Array): Record<string, () => Promise<Uint8Array>> {
  return {
    buffer: () => codec.decode(body, LIMIT),
    stream: () => collected(codec.decodeStream(inPieces(body, 48), LIMIT)),
  };
}

/** Any other kind of error is a defect and fails the test. */
function onlyOurs(error: unknown): undefined {
  if (!(error instanceof BodyCorruptError)) {
    throw error;
  }
}
