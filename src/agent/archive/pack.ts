/**
 * Packs small files into tar bundles, in the order they come. A member is hashed as it is packed: a file whose bytes are
 * no longer those of its hash is left out, never stored under it.
 */

import { constants, open } from 'node:fs/promises';
import type { RunningHash } from '../../hashing/hasher.ts';
import type { ChunkHash, ContentHash } from '../../hashing/hashes.ts';
import { SMALL_FILE_BYTES_MAX_EXCLUSIVE, TAR_MEMBERS_MAX, TAR_TARGET_BYTES } from '../../limits.ts';
import { TarBundleWriter } from '../../repository/tar-bundle.ts';
import { codeOf } from '../files/system-errors.ts';
import { localPathOf } from '../state/paths.ts';
import { type ArchiveContext, type Carrier, carrierChanged, carrierFailed } from './archive-context.ts';
import type { SpooledBody } from './spool.ts';

/** Complete and in the spool, not proven yet. Its members are in the run database under `id`. */
export interface PackedTar {
  readonly id: number;
  readonly chunkHash: ChunkHash;
  readonly body: SpooledBody;
  readonly tarBytes: number;
  readonly memberCount: number;
}

interface OpenTar {
  readonly id: number;
  readonly writer: TarBundleWriter;
  readonly hash: RunningHash;
  readonly spooled: Promise<SpooledBody>;
  tarBytes: number;
}

export class TarPacker {
  readonly #context: ArchiveContext;
  readonly #onPacked: (tar: PackedTar) => Promise<void>;
  readonly #firstId: number;
  #tars = 0;
  #open: OpenTar | undefined;

  /** `firstId`: tars of one run are numbered; a packer that continues must not reuse numbers. */
  constructor(context: ArchiveContext, onPacked: (tar: PackedTar) => Promise<void>, firstId = 1) {
    this.#context = context;
    this.#onPacked = onPacked;
    this.#firstId = firstId;
  }

  get nextId(): number {
    return this.#firstId + this.#tars;
  }

  async add(carrier: Carrier): Promise<void> {
    const bytes = await this.#read(carrier);
    if (bytes === undefined) {
      return;
    }
    this.#open ??= this.#start();
    const { id, writer, spooled } = this.#open;
    this.#context.run.tarMembers.add(id, {
      content: carrier.contentHash,
      sizeBytes: bytes.byteLength,
      fileId: carrier.fileId,
    });
    try {
      await writer.add(carrier.contentHash, bytes);
    } catch (error) {
      // The spool stopped reading: its own error says why.
      await spooled;
      throw error;
    }
    if (writer.dataBytes >= TAR_TARGET_BYTES || writer.memberCount >= TAR_MEMBERS_MAX) {
      await this.seal();
    }
  }

  /** Ends the tar being packed, if it has a member. */
  async seal(): Promise<void> {
    const tar = this.#open;
    if (tar === undefined) {
      return;
    }
    this.#open = undefined;
    tar.writer.finish();
    const body = await tar.spooled;
    await this.#onPacked({
      id: tar.id,
      chunkHash: tar.hash.digest() as ChunkHash,
      body,
      tarBytes: tar.tarBytes,
      memberCount: tar.writer.memberCount,
    });
  }

  /** After a failure elsewhere: nothing waits for this packer any more. */
  async abandon(): Promise<void> {
    const tar = this.#open;
    this.#open = undefined;
    if (tar !== undefined) {
      tar.writer.abandon();
      await tar.spooled.then(
        (body) => body.remove(),
        () => undefined,
      );
    }
  }

  #start(): OpenTar {
    const writer = new TarBundleWriter();
    const hash = this.#context.hasher.start();
    const tar: OpenTar = {
      id: this.nextId,
      writer,
      hash,
      tarBytes: 0,
      spooled: this.#spool(writer, (bytes) => {
        hash.update(bytes);
        tar.tarBytes += bytes.byteLength;
      }),
    };
    this.#tars++;
    return tar;
  }

  #spool(writer: TarBundleWriter, see: (bytes: Uint8Array) => void): Promise<SpooledBody> {
    const spooled = this.#context.spool.write(this.#context.codec.encodeStream(seen(writer.stream, see)));
    // A spool that fails before it reads must not leave `add` waiting for its reader.
    spooled.catch(() => writer.abandon());
    return spooled;
  }

  /** The file's bytes, if they still are the ones that were hashed. */
  async #read(carrier: Carrier): Promise<Uint8Array | undefined> {
    await this.#context.beforeCarrierRead?.(carrier.path);
    let bytes: Uint8Array;
    try {
      bytes = await readSmall(localPathOf(this.#context.root, carrier.path), carrier.sizeBytes);
    } catch (error) {
      carrierFailed(this.#context, carrier, `it could not be read again for its upload (${codeOf(error)})`);
      return undefined;
    }
    if (bytes.byteLength >= SMALL_FILE_BYTES_MAX_EXCLUSIVE || this.#hashOf(bytes) !== carrier.contentHash) {
      carrierChanged(this.#context, carrier);
      return undefined;
    }
    return bytes;
  }

  #hashOf(bytes: Uint8Array): ContentHash {
    return this.#context.hasher.contentHash(bytes);
  }
}

/** One byte more than expected is asked for, so that a file that grew is noticed and never read whole. */
async function readSmall(path: string, expectedBytes: number): Promise<Uint8Array> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(expectedBytes + 1);
    // A regular file gives less than was asked for only at its end; should one do otherwise, its hash will tell.
    const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function* seen(source: AsyncIterable<Uint8Array>, see: (bytes: Uint8Array) => void): AsyncGenerator<Uint8Array> {
  for await (const bytes of source) {
    see(bytes);
    yield bytes;
  }
}
