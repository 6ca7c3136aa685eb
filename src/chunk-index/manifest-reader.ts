/**
 * Reads a manifest back, a block at a time. Invariant: what is yielded comes from one version of the blob, and the
 * reading ends normally only behind the last line with all rows counted.
 */

import { AriusError } from '../errors.ts';
import { parseContentHash } from '../hashing/hashes.ts';
import { MANIFEST_BLOCK_BYTES } from '../limits.ts';
import type { PendingRowKey } from '../pending/pending-row.ts';
import type { BlobContainer, ByteRange } from '../storage/ports.ts';
import { MANIFEST_KIND, MANIFEST_VERSION, type ManifestSection } from './manifest.ts';

interface Section extends ManifestSection {
  readonly rows: PendingRowKey[];
}

/** Undefined when there is no manifest: the root was not flushed by this job, or its scratch space was cleared. */
export async function openManifest(
  staging: BlobContainer,
  name: string,
  root: string,
  blockBytes: number = MANIFEST_BLOCK_BYTES,
): Promise<AsyncGenerator<ManifestSection> | undefined> {
  const first = await readBlock(staging, name, { offsetBytes: 0, lengthBytes: blockBytes });
  return first === undefined ? undefined : readSections(name, root, readLines(staging, name, first, blockBytes));
}

async function* readSections(
  name: string,
  root: string,
  lines: AsyncIterable<string>,
): AsyncGenerator<ManifestSection> {
  let section: Section | undefined;
  let started = false;
  let rowCount = 0;
  for await (const line of lines) {
    const [kind, first, second] = JSON.parse(line) as unknown[];
    if (!started) {
      if (kind !== MANIFEST_KIND || first !== MANIFEST_VERSION || second !== root) {
        throw unusable(name, `it does not begin as a manifest of ${root}`);
      }
      started = true;
    } else if (kind === 'row' && section !== undefined && typeof first === 'string' && typeof second === 'string') {
      section.rows.push({ contentHash: parseContentHash(first), etag: second });
      rowCount += 1;
    } else if (kind === 'shard' && typeof first === 'string' && typeof second === 'string') {
      if (section !== undefined) {
        yield section;
      }
      section = { prefix: first, etag: second, rows: [] };
    } else if (kind === 'end' && first === rowCount) {
      if (section !== undefined) {
        yield section;
      }
      return;
    } else {
      throw unusable(name, `unexpected line ${JSON.stringify(line.slice(0, 80))}`);
    }
  }
  throw unusable(name, 'its end is missing');
}

interface Block {
  readonly text: string;
  /** Of the whole blob. */
  readonly etag: string;
  readonly contentLengthBytes: number;
}

async function* readLines(
  staging: BlobContainer,
  name: string,
  first: Block,
  blockBytes: number,
): AsyncGenerator<string> {
  let block: Block | undefined = first;
  let rest = '';
  for (let offsetBytes = blockBytes; ; offsetBytes += blockBytes) {
    if (block?.etag !== first.etag) {
      throw unusable(name, 'it was replaced while it was read');
    }
    const lines = (rest + block.text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (offsetBytes >= first.contentLengthBytes) {
      return;
    }
    block = await readBlock(staging, name, { offsetBytes, lengthBytes: blockBytes });
  }
}

/** A manifest is ASCII: JSON text of hex and ETags, so a block boundary never cuts a character. */
async function readBlock(staging: BlobContainer, name: string, range: ByteRange): Promise<Block | undefined> {
  const opened = await staging.openRead(name, range);
  if (opened === undefined) {
    return undefined;
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of opened.body) {
    pieces.push(piece);
  }
  const { etag, contentLengthBytes } = opened.properties;
  return { text: Buffer.concat(pieces).toString('latin1'), etag, contentLengthBytes };
}

function unusable(name: string, why: string): AriusError {
  return new AriusError(
    'pending-not-flushed',
    `The flush manifest ${name} cannot be used: ${why}`,
    'Run the same command again: the entries are kept and are flushed once more.',
  );
}
