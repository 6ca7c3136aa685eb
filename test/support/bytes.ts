import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Passphrase } from '../../src/hashing/passphrase.ts';

/** Bytes for tests: the published vectors, their generator, and streams of chosen pieces. */

// biome-ignore lint/suspicious/noExplicitAny: the shape of a vector file is what its test says it is
export function vectors(file: string): any {
  return JSON.parse(readFileSync(join(import.meta.dirname, '..', 'vectors', file), 'utf8'));
}

/** The first `length` bytes of SHA256(label || 0) || SHA256(label || 1) || …, as the vectors define it. */
export function generated(label: string, length: number): Buffer {
  const blocks: Buffer[] = [];
  for (let index = 0; index * 32 < length; index += 1) {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(index);
    blocks.push(createHash('sha256').update(label, 'ascii').update(counter).digest());
  }
  return Buffer.concat(blocks).subarray(0, length);
}

export function base64(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function passphraseOf(text: string | null): Passphrase | undefined {
  return text === null ? undefined : new Passphrase(text);
}

/** A copy with one bit turned over. */
export function withFlippedBit(bytes: Uint8Array, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return flipped;
}

export async function* inPieces(bytes: Uint8Array, pieceBytes = 65_536): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += pieceBytes) {
    yield bytes.subarray(offset, offset + pieceBytes);
  }
}

export async function collected(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) {
    all.push(Uint8Array.from(piece));
  }
  return Buffer.concat(all);
}
