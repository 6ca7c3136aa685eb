/**
 * What a compression level costs and gives, for the two things this product compresses: chunks (streams of files, in the
 * agent) and shards and filetrees (small texts, as whole buffers, in the service). Prints one table each, with ratios to
 * level 3 of the same run, so that runs on different machines can be compared. Run with `node bench/codec.ts`.
 */

import { createCipheriv, createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createBodyCodec } from '../src/codec/body-codec.ts';
import { Passphrase } from '../src/hashing/passphrase.ts';

const MIB = 1024 * 1024;
const LEVELS = [1, 3, 6, 9, 15];
const REFERENCE_LEVEL = 3;
const MODULES = join(import.meta.dirname, '..', 'node_modules');

interface Measured {
  readonly level: number;
  readonly encodeSeconds: number;
  readonly decodeSeconds: number;
  readonly storedBytes: number;
}

const chunks = [
  ...scripts(24 * MIB),
  ...pieces(readFileSync(join(MODULES, 'node', 'bin', 'node')).subarray(0, 24 * MIB)),
];
print(
  'Chunks: 24 MiB of scripts and 24 MiB of a binary, streamed',
  totalBytes(chunks),
  await measure(streamed, chunks),
);
print('Chunks, sealed', totalBytes(chunks), await measure(streamedSealed, chunks, [1, 3]));
const photos = [...pieces(incompressible(32 * MIB))];
print(
  'Chunks: what is compressed already (photos, video), streamed',
  totalBytes(photos),
  await measure(streamed, photos),
);
const shards = shardTexts(64);
print('Shards: 64 texts of 1024 entries, whole buffers', totalBytes(shards), await measure(buffered, shards));
const filetrees = filetreeTexts(200);
print(
  'Filetrees: 200 nodes of 1 to 40 entries, whole buffers',
  totalBytes(filetrees),
  await measure(buffered, filetrees),
);

type Run = (level: number, input: readonly Uint8Array[]) => Promise<Measured>;

async function measure(run: Run, input: readonly Uint8Array[], levels = LEVELS): Promise<Measured[]> {
  const measured: Measured[] = [];
  await run(1, input.slice(0, 20));
  for (const level of levels) {
    measured.push(await run(level, input));
  }
  return measured;
}

function streamed(level: number, input: readonly Uint8Array[], passphrase?: Passphrase): Promise<Measured> {
  const codec = createBodyCodec(passphrase, { level });
  return timed(
    level,
    async () => collect(codec.encodeStream(from(input))),
    async (stored) => {
      for await (const piece of codec.decodeStream(from(stored), Number.MAX_SAFE_INTEGER)) {
        void piece;
      }
    },
  );
}

function streamedSealed(level: number, input: readonly Uint8Array[]): Promise<Measured> {
  return streamed(level, input, new Passphrase('bench'));
}

function buffered(level: number, input: readonly Uint8Array[]): Promise<Measured> {
  const codec = createBodyCodec(undefined, { level });
  return timed(
    level,
    () => Promise.all(input.map((text) => codec.encode(text))),
    (stored) => Promise.all(stored.map((body) => codec.decode(body, MIB))),
  );
}

async function timed(
  level: number,
  encode: () => Promise<Uint8Array[]>,
  decode: (stored: Uint8Array[]) => Promise<unknown>,
): Promise<Measured> {
  const start = performance.now();
  const stored = await encode();
  const middle = performance.now();
  await decode(stored);
  const end = performance.now();
  return {
    level,
    encodeSeconds: (middle - start) / 1000,
    decodeSeconds: (end - middle) / 1000,
    storedBytes: totalBytes(stored),
  };
}

function print(title: string, plainBytes: number, measured: readonly Measured[]): void {
  const reference = measured.find(({ level }) => level === REFERENCE_LEVEL);
  console.log(`\n${title}: ${(plainBytes / MIB).toFixed(1)} MiB`);
  console.log('level   ratio   encode MiB/s   decode MiB/s   size to level 3   time to level 3');
  for (const { level, encodeSeconds, decodeSeconds, storedBytes } of measured) {
    console.log(
      [
        String(level).padStart(5),
        (plainBytes / storedBytes).toFixed(2).padStart(7),
        (plainBytes / MIB / encodeSeconds).toFixed(1).padStart(14),
        (plainBytes / MIB / decodeSeconds).toFixed(0).padStart(14),
        (storedBytes / (reference?.storedBytes ?? storedBytes)).toFixed(3).padStart(17),
        (encodeSeconds / (reference?.encodeSeconds ?? encodeSeconds)).toFixed(2).padStart(17),
      ].join(' '),
    );
  }
}

function* scripts(bytesMax: number): Generator<Uint8Array> {
  let bytes = 0;
  for (const path of readdirSync(MODULES, { recursive: true, encoding: 'utf8' }).sort()) {
    if (/\.(js|cjs|mjs|ts)$/.test(path) && statSync(join(MODULES, path)).isFile()) {
      const content = readFileSync(join(MODULES, path));
      bytes += content.length;
      if (bytes > bytesMax) {
        return;
      }
      yield* pieces(content);
    }
  }
}

/** A key stream: fixed bytes without any pattern. */
function incompressible(byteCount: number): Uint8Array {
  return createCipheriv('aes-256-ctr', Buffer.alloc(32), Buffer.alloc(16)).update(Buffer.alloc(byteCount));
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += 65_536) {
    yield bytes.subarray(offset, offset + 65_536);
  }
}

/** Half large entries, half members of a few tars, as a shard of a real repository has them. */
function shardTexts(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, shard) => {
    const lines = Array.from({ length: 1024 }, (_, line) => {
      const random = hash(`${shard}/${line}`);
      const size = Number.parseInt(random.slice(0, 5), 16);
      return line % 2 === 0
        ? `${random} ${size * 7} ${size * 3} 2`
        : `${random} ${hash(`tar ${line % 40}`)} ${size} ${41_000_000 + (line % 40)} 2`;
    });
    return Buffer.from(`${lines.sort().join('\n')}\n`);
  });
}

function filetreeTexts(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, node) => {
    const lines = Array.from({ length: 1 + (node % 40) }, (_, line) => {
      const time = `2024-03-${String(1 + (line % 28)).padStart(2, '0')}T10:00:${String(node % 60).padStart(2, '0')}.1234567+00:00`;
      return `${hash(`${node}.${line}`)} F ${time} ${time} IMG_${1000 + line}.jpg`;
    });
    return Buffer.from(`${lines.join('\n')}\n`);
  });
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function totalBytes(parts: readonly Uint8Array[]): number {
  return parts.reduce((total, { length }) => total + length, 0);
}

async function* from(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const collected: Uint8Array[] = [];
  for await (const part of parts) {
    collected.push(part);
  }
  return collected;
}
