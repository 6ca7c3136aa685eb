/**
 * Reads filetree nodes through read grants. A node is verified before one entry of it is used: all its bytes have
 * arrived, and their hash is its name (old nodes with CRLF were hashed as they are). It may describe a directory of any
 * size: entries come in pages, and a large node is read twice, once to verify and once to use.
 */

import type { BodyCodec } from '../../codec/body-codec.ts';
import { BodyCorruptError } from '../../codec/errors.ts';
import { AriusError } from '../../errors.ts';
import type { Hasher } from '../../hashing/hasher.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { BODY_DOWNLOAD_ATTEMPTS_MAX, FILETREE_DECODED_BYTES_MAX, FILETREE_MEMORY_BYTES_MAX } from '../../limits.ts';
import { filetreeBlobName } from '../../repository/blob-names.ts';
import { type FileTreeEntry, parseFileTree } from '../../repository/filetree.ts';
import { reasonOf } from '../files/system-errors.ts';
import { type BlobClient, BlobMissingError } from '../transport/blob-client.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';

const LF = 0x0a;

export class FiletreeReader {
  readonly #api: RepositoryApi;
  readonly #blobs: BlobClient;
  readonly #codec: BodyCodec;
  readonly #hasher: Hasher;
  readonly #signal: AbortSignal;

  constructor(options: {
    api: RepositoryApi;
    blobs: BlobClient;
    codec: BodyCodec;
    hasher: Hasher;
    signal: AbortSignal;
  }) {
    this.#api = options.api;
    this.#blobs = options.blobs;
    this.#codec = options.codec;
    this.#hasher = options.hasher;
    this.#signal = options.signal;
  }

  /** Pages of entries, in the order of the node. */
  async *read(hash: FileTreeHash): AsyncGenerator<FileTreeEntry[], void, void> {
    const bytes = await this.#verify(hash);
    if (bytes !== 'large') {
      yield parseFileTree(bytes);
      return;
    }
    for await (const lines of wholeLines(this.#decoded(hash))) {
      yield parseFileTree(lines);
    }
  }

  /** The node's text; of one that is large, only that it is whole. */
  async #verify(hash: FileTreeHash): Promise<Uint8Array | 'large'> {
    for (let attempt = 1; ; attempt++) {
      try {
        const node = await this.#readWhole(hash);
        if (node.hash === hash) {
          return node.bytes;
        }
        throw new BodyCorruptError('its bytes do not have the hash that is its name');
      } catch (error) {
        this.#signal.throwIfAborted();
        if (error instanceof AriusError || attempt >= BODY_DOWNLOAD_ATTEMPTS_MAX) {
          throw error instanceof BodyCorruptError ? damaged(hash, error) : error;
        }
      }
    }
  }

  async #readWhole(hash: FileTreeHash): Promise<{ hash: string; bytes: Uint8Array | 'large' }> {
    const running = this.#hasher.start();
    const parts: Uint8Array[] = [];
    let lengthBytes = 0;
    for await (const bytes of this.#decoded(hash)) {
      running.update(bytes);
      lengthBytes += bytes.byteLength;
      if (lengthBytes <= FILETREE_MEMORY_BYTES_MAX) {
        parts.push(bytes);
      } else {
        parts.length = 0;
      }
    }
    return {
      hash: running.digest(),
      bytes: lengthBytes <= FILETREE_MEMORY_BYTES_MAX ? Buffer.concat(parts) : 'large',
    };
  }

  async *#decoded(hash: FileTreeHash): AsyncGenerator<Uint8Array, void, void> {
    const name = filetreeBlobName(hash);
    try {
      const body = await this.#blobs.read(await this.#api.readGrant(name));
      yield* this.#codec.decodeStream(body, FILETREE_DECODED_BYTES_MAX);
    } catch (error) {
      if (error instanceof BlobMissingError) {
        const detail = `The filetree node ${hash} of this snapshot is missing.`;
        throw new AriusError('blob-corrupt', detail, NEXT_MISSING, { cause: error });
      }
      throw error;
    }
  }
}

/** Cuts a text into pieces that end with a whole line. */
async function* wholeLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let rest: Uint8Array = new Uint8Array();
  for await (const bytes of source) {
    const end = bytes.lastIndexOf(LF) + 1;
    if (end === 0) {
      rest = Buffer.concat([rest, bytes]);
      continue;
    }
    const lines = Buffer.concat([rest, bytes.subarray(0, end)]);
    rest = bytes.slice(end);
    if (lines.some((byte) => byte !== LF)) {
      yield lines;
    }
  }
  if (rest.byteLength > 0) {
    yield rest;
  }
}

const NEXT_MISSING =
  'If the folder is still as it was then, `arius-agent archive <folder> --rehash` uploads the node again. ' +
  'Otherwise choose another snapshot with --snapshot.';
/** Nothing is ever overwritten by an agent, so it cannot help here. */
const NEXT_DAMAGED =
  'Choose another snapshot with --snapshot, or put back the blob from a copy: archiving does not replace it.';

function damaged(hash: FileTreeHash, cause: BodyCorruptError): AriusError {
  const detail = `The filetree node ${hash} of this snapshot is damaged: ${reasonOf(cause)}.`;
  return new AriusError('blob-corrupt', detail, NEXT_DAMAGED, { cause });
}
