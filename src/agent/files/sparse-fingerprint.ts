/**
 * A fingerprint over a few regions of a file, spread from head to tail: much cheaper than reading it whole, and good
 * enough, when the user asks for it, to believe that a large file is the same although its change time is not.
 * Algorithm 1 of the format: SHA-256 over the size (64-bit little-endian) and the sampled regions.
 */

import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

const REGION_BYTES = 262_144;
const REGIONS_MIN = 4;
const REGIONS_MAX = 64;
const GIB = 2 ** 30;

export interface Region {
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

/** In ascending order; neighbours overlap when the file is hardly larger than its samples. */
export function fingerprintRegions(sizeBytes: number): Region[] {
  const count = Math.min(REGIONS_MAX, Math.max(REGIONS_MIN, Math.ceil(sizeBytes / GIB)));
  if (sizeBytes <= count * REGION_BYTES) {
    return sizeBytes === 0 ? [] : [{ offsetBytes: 0, lengthBytes: sizeBytes }];
  }
  // The product can exceed 2^53 for files of many terabytes: integers only.
  const last = BigInt(sizeBytes - REGION_BYTES);
  return Array.from({ length: count }, (_, index) => ({
    offsetBytes: Number((BigInt(index) * last) / BigInt(count - 1)),
    lengthBytes: REGION_BYTES,
  }));
}

/** Reads only the regions. Undefined when the file became shorter meanwhile. */
export async function readFingerprint(handle: FileHandle, sizeBytes: number): Promise<string | undefined> {
  const hash = startFingerprint(sizeBytes);
  const buffer = Buffer.allocUnsafe(Math.min(REGION_BYTES * REGIONS_MIN, Math.max(1, sizeBytes)));
  for (const region of fingerprintRegions(sizeBytes)) {
    let done = 0;
    while (done < region.lengthBytes) {
      const wanted = Math.min(buffer.byteLength, region.lengthBytes - done);
      const { bytesRead } = await handle.read(buffer, 0, wanted, region.offsetBytes + done);
      if (bytesRead === 0) {
        return undefined;
      }
      hash.update(buffer.subarray(0, bytesRead));
      done += bytesRead;
    }
  }
  return hash.digest('hex');
}

/** The same fingerprint from bytes that pass by anyway while a file is hashed. */
export class PassingFingerprint {
  readonly #hash: ReturnType<typeof createHash>;
  /** Regions overlap for small files, so several may be open at once; each keeps its bytes until it is its turn. */
  readonly #regions: { readonly region: Region; readonly parts: Uint8Array[]; bytes: number }[];

  constructor(sizeBytes: number) {
    this.#hash = startFingerprint(sizeBytes);
    this.#regions = fingerprintRegions(sizeBytes).map((region) => ({ region, parts: [], bytes: 0 }));
  }

  update(bytes: Uint8Array, offsetBytes: number): void {
    for (const open of this.#regions) {
      const { region } = open;
      if (region.offsetBytes >= offsetBytes + bytes.byteLength) {
        break;
      }
      const from = Math.max(region.offsetBytes, offsetBytes) - offsetBytes;
      const to = Math.min(region.offsetBytes + region.lengthBytes - offsetBytes, bytes.byteLength);
      if (to > from) {
        open.parts.push(new Uint8Array(bytes.subarray(from, to)));
        open.bytes += to - from;
      }
    }
    this.#settle();
  }

  /** Undefined when fewer bytes passed than the file had. */
  digest(): string | undefined {
    return this.#regions.length === 0 ? this.#hash.digest('hex') : undefined;
  }

  #settle(): void {
    for (let open = this.#regions[0]; open !== undefined; open = this.#regions[0]) {
      if (open.bytes < open.region.lengthBytes) {
        return;
      }
      for (const part of open.parts) {
        this.#hash.update(part);
      }
      this.#regions.shift();
    }
  }
}

function startFingerprint(sizeBytes: number): ReturnType<typeof createHash> {
  const size = Buffer.alloc(8);
  size.writeBigInt64LE(BigInt(sizeBytes));
  return createHash('sha256').update(size);
}
