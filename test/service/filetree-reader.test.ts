import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Hasher } from '../../src/hashing/hasher.ts';
import { parseContentHash, parseFileTreeHash } from '../../src/hashing/hashes.ts';
import { type FileTreeEntry, serializeFileTree } from '../../src/repository/filetree.ts';
import { openFileTree } from '../../src/service/filetree-reader.ts';
import type { BlobContainer, OpenedBlob } from '../../src/storage/ports.ts';
import { inPieces } from '../support/bytes.ts';

const plain = createBodyCodec(undefined);
const hasher = new Hasher();

/** A store of one node whose text arrives in pieces of a given size, so that lines are cut anywhere. */
function store(text: Uint8Array, pieceBytes: number): Parameters<typeof openFileTree>[0] {
  const body = async function* (): AsyncGenerator<Uint8Array> {};
  const container = { openRead: () => Promise.resolve({ body: body() } as unknown as OpenedBlob) };
  return {
    container: container as unknown as BlobContainer,
    hasher,
    codec: { ...plain, decodeStream: () => inPieces(text, pieceBytes) },
  };
}

async function entriesOf(text: Uint8Array, pieceBytes: number): Promise<FileTreeEntry[]> {
  const groups = await openFileTree(store(text, pieceBytes), hasher.fileTreeHash(text));
  const entries: FileTreeEntry[] = [];
  for await (const group of groups ?? []) {
    entries.push(...group);
  }
  return entries;
}

const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter((text) => {
  try {
    serializeFileTree([{ kind: 'directory', name: text, fileTreeHash: parseFileTreeHash('ab'.repeat(32)) }]);
    return true;
  } catch {
    return false;
  }
});

describe('reading a filetree node in pieces', () => {
  it('gives the entries of the node, wherever its text is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 90 }),
        async (names, cut) => {
          const entries = names.map((each, index): FileTreeEntry => {
            const hash = index.toString(16).padStart(64, '0');
            return index % 3 === 0
              ? { kind: 'directory', name: each, fileTreeHash: parseFileTreeHash(hash) }
              : { kind: 'file', name: each, contentHash: parseContentHash(hash), createdTicks: 1n, modifiedTicks: 2n };
          });
          const text = serializeFileTree(entries);
          const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
          expect(await entriesOf(text, cut)).toEqual(sorted);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('takes a node with the line ends of another system, and empty lines', async () => {
    const line = `${'ab'.repeat(32)} D one/`;
    const text = Buffer.from(`${line}\r\n\n${line.replace('one', 'two')}\r\n\r\n`);
    for (const cut of [1, 2, 70, 72, 1000]) {
      expect((await entriesOf(text, cut)).map((entry) => entry.name)).toEqual(['one', 'two']);
    }
  });

  it('invariant 11: an empty node, one out of order, and one with another hash are errors that name it', async () => {
    const line = (each: string): string => `${'ab'.repeat(32)} D ${each}/\n`;
    for (const text of ['', '\n\r\n', line('two') + line('one')]) {
      const bytes = Buffer.from(text);
      const named = expect.stringContaining(`filetrees/${hasher.fileTreeHash(bytes)}`);
      await expect(entriesOf(bytes, 10)).rejects.toMatchObject({ code: 'blob-corrupt', message: named });
    }
    const groups = await openFileTree(store(Buffer.from(line('one')), 10), parseFileTreeHash('cd'.repeat(32)));
    await expect(groups?.next().then(async () => await groups.next())).rejects.toMatchObject({ code: 'blob-corrupt' });
  });

  it('says when there is no such node', async () => {
    const empty = { ...store(new Uint8Array(), 1), container: { openRead: () => Promise.resolve(undefined) } };
    const asked = openFileTree(
      empty as unknown as Parameters<typeof openFileTree>[0],
      parseFileTreeHash('cd'.repeat(32)),
    );
    await expect(asked).resolves.toBeUndefined();
  });
});
