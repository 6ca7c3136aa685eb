import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { Hasher } from '../../src/hashing/hasher.ts';
import { parseContentHash, parseFileTreeHash } from '../../src/hashing/hashes.ts';
import { Passphrase } from '../../src/hashing/passphrase.ts';
import {
  type FileTreeEntry,
  InvalidFileTreeError,
  parseFileTree,
  serializeFileTree,
} from '../../src/repository/filetree.ts';
import { segmentProblem } from '../../src/repository/repository-path.ts';
import { parseTimestamp } from '../../src/repository/timestamps.ts';
import { base64, sha256, vectors } from '../support/bytes.ts';

const CONTENT = parseContentHash('ab'.repeat(32));
const NODE = parseFileTreeHash('cd'.repeat(32));

interface VectorEntry {
  readonly type: 'F' | 'D';
  readonly name: string;
  readonly hash: string;
  readonly created: string;
  readonly modified: string;
}

function entryOf({ type, name, hash, created, modified }: VectorEntry): FileTreeEntry {
  return type === 'D'
    ? { kind: 'directory', name, fileTreeHash: parseFileTreeHash(hash) }
    : {
        kind: 'file',
        name,
        contentHash: parseContentHash(hash),
        createdTicks: parseTimestamp(created),
        modifiedTicks: parseTimestamp(modified),
      };
}

function file(name: string, ticks = 0n): FileTreeEntry {
  return { kind: 'file', name, contentHash: CONTENT, createdTicks: ticks, modifiedTicks: ticks };
}

function directory(name: string): FileTreeEntry {
  return { kind: 'directory', name, fileTreeHash: NODE };
}

function textOf(entries: readonly FileTreeEntry[]): string {
  return new TextDecoder().decode(serializeFileTree(entries));
}

function parsed(text: string): FileTreeEntry[] {
  return parseFileTree(new TextEncoder().encode(text));
}

const name = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1 }),
    fc.string({ unit: fc.constantFrom(' ', 'a', 'B', '😀', '～', '.'), minLength: 1 }),
  )
  .filter((text) => segmentProblem(text) === undefined);
const ticks = fc.bigInt({ min: parseTimestamp('0001-01-01T00:00:00Z'), max: parseTimestamp('9999-12-31T23:59:59Z') });
const entry: fc.Arbitrary<FileTreeEntry> = fc.oneof(
  fc.record({
    kind: fc.constant('file' as const),
    name,
    contentHash: fc.constant(CONTENT),
    createdTicks: ticks,
    modifiedTicks: ticks,
  }),
  fc.record({ kind: fc.constant('directory' as const), name, fileTreeHash: fc.constant(NODE) }),
);
const entries = fc.uniqueArray(entry, { minLength: 1, selector: (each) => `${each.kind} ${each.name}` });

describe('the published filetrees', () => {
  it.each(
    vectors('filetrees.json').cases as {
      name: string;
      entries: VectorEntry[];
      text: string;
      textSha256: string;
      passphrase: string;
      fileTreeHash: string;
      fileTreeHashWithoutPassphrase: string;
      blobBase64: string;
    }[],
  )('FT-06 FT-07: $name', async (vector) => {
    const given = vector.entries.map(entryOf);
    for (const order of [given, given.toReversed()]) {
      expect(textOf(order)).toBe(vector.text);
    }
    const bytes = serializeFileTree(given);
    const passphrase = new Passphrase(vector.passphrase);
    expect(sha256(bytes)).toBe(vector.textSha256);
    expect(new Hasher(passphrase).fileTreeHash(bytes)).toBe(vector.fileTreeHash);
    expect(new Hasher().fileTreeHash(bytes)).toBe(vector.fileTreeHashWithoutPassphrase);
    const stored = await createBodyCodec(passphrase).decode(base64(vector.blobBase64), 100_000);
    expect(new TextDecoder().decode(stored)).toBe(vector.text);
    expect(textOf(parseFileTree(stored))).toBe(vector.text);
  });

  it.each(vectors('filetrees.json').lineParsing as { line: string; ok: boolean }[])(
    'FT-02 FT-03 FT-04 FT-14 FT-17: $line',
    ({ line, ok }) => {
      if (ok) {
        expect(parsed(`${line}\n`)).toHaveLength(1);
      } else {
        expect(() => parsed(`${line}\n`)).toThrow(expect.objectContaining({ code: 'blob-corrupt' }));
      }
    },
  );
});

describe('a filetree node', () => {
  it('FT-05 FT-12: comes back as it was written, sorted', () => {
    fc.assert(
      fc.property(entries, (given) => {
        const back = parseFileTree(serializeFileTree(given));
        expect(new Set(back.map((each) => `${each.kind} ${each.name}`)).size).toBe(given.length);
        expect(back).toEqual(expect.arrayContaining(given));
        expect(back.every((each, index) => index === 0 || (back[index - 1]?.name ?? '') <= each.name)).toBe(true);
      }),
    );
  });

  it('FT-08, FT-37, FT-48, FT-51: is the same bytes for the same entries in any order', () => {
    const shuffled = entries.chain((given) =>
      fc.tuple(fc.constant(given), fc.shuffledSubarray(given, { minLength: given.length, maxLength: given.length })),
    );
    fc.assert(
      fc.property(shuffled, ([given, other]) => {
        expect(textOf(other)).toBe(textOf(given));
      }),
    );
  });

  it('FT-01: has LF alone, the last line too', () => {
    const text = textOf([file('a'), file('b')]);
    expect(text).not.toContain('\r');
    expect(text.endsWith('a\n') || text.endsWith('b\n')).toBe(true);
    expect(text.split('\n')).toHaveLength(3);
  });

  it('FT-09: gives times to files and none to directories', () => {
    expect(textOf([file('f', 10_000_000n)])).toBe(
      `${CONTENT} F 1970-01-01T00:00:01.0000000+00:00 1970-01-01T00:00:01.0000000+00:00 f\n`,
    );
    expect(textOf([directory('d')])).toBe(`${NODE} D d/\n`);
  });

  it('FT-10 FT-11: keeps spaces in names, wherever they are', () => {
    const given = [file(' a b '), directory(' c  d ')];
    expect(parseFileTree(serializeFileTree(given))).toEqual(given);
  });

  it('FT-13: is read although lines end with CR', () => {
    const text = textOf([file('a'), directory('d')]);
    expect(parsed(text.replaceAll('\n', '\r\n'))).toEqual(parsed(text));
    expect(parsed(text.replaceAll('\n', '\r\r\n\n'))).toEqual(parsed(text));
  });

  it('FT-38 FT-49 FT-50: has another hash for another time, another hash, another passphrase', () => {
    const hashOf = (given: FileTreeEntry[], passphrase?: string): string =>
      new Hasher(passphrase === undefined ? undefined : new Passphrase(passphrase)).fileTreeHash(
        serializeFileTree(given),
      );
    const hashes = [
      hashOf([file('a')]),
      hashOf([file('a', 1n)]),
      hashOf([file('b')]),
      hashOf([{ ...file('a'), contentHash: parseContentHash('ef'.repeat(32)) } as FileTreeEntry]),
      hashOf([file('a')], 'p'),
      hashOf([file('a')], 'q'),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it('FT-39: refuses two files, or two directories, with one name', () => {
    for (const twice of [
      [file('a'), file('b'), file('a', 1n)],
      [directory('a'), directory('a')],
    ]) {
      expect(() => serializeFileTree(twice)).toThrow(InvalidFileTreeError);
    }
    const line = textOf([file('a')]);
    expect(() => parsed(line + line)).toThrow(/twice/);
  });

  it('may have a file and a directory of one name, the file first', () => {
    expect(parseFileTree(serializeFileTree([directory('a'), file('a')])).map(({ kind }) => kind)).toEqual([
      'file',
      'directory',
    ]);
  });

  it('FT-53: refuses to be written with a name the format cannot hold', () => {
    for (const wrong of ['', ' ', '.', '..', 'a/b', 'a\\b', 'a\nb', 'a\ud800']) {
      expect(() => serializeFileTree([file(wrong)])).toThrow(InvalidFileTreeError);
      expect(() => serializeFileTree([directory(wrong)])).toThrow(InvalidFileTreeError);
    }
  });

  it('does not exist without entries', () => {
    for (const text of ['', '\n', '\r\n\n']) {
      expect(() => parsed(text)).toThrow(/no entries/);
    }
  });

  it('is corrupt when it is not UTF-8', () => {
    const bytes = Buffer.from(textOf([file('a')]));
    bytes.writeUInt8(0xff, bytes.length - 2);
    expect(() => parseFileTree(bytes)).toThrow(/UTF-8/);
  });

  it('is corrupt as a whole when one line is', () => {
    expect(() => parsed(`${textOf([file('a')])}broken\n`)).toThrow(/"broken" is not an entry/);
  });
});
