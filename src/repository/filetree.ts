import { AriusError } from '../errors.ts';
import { type ContentHash, type FileTreeHash, parseContentHash, parseFileTreeHash } from '../hashing/hashes.ts';
import { segmentProblem } from './repository-path.ts';
import { formatTicks, parseTimestamp } from './timestamps.ts';

/**
 * The text of a filetree node: one line per entry of a directory, LF after every line, sorted by name in UTF-16 order
 * (JavaScript's `<`). The node's hash is over exactly these bytes, so the same entries must always give the same text.
 *
 *     <contentHash> F <created> <modified> <name>
 *     <fileTreeHash> D <name>/
 */
export type FileTreeEntry =
  | {
      readonly kind: 'file';
      readonly name: string;
      readonly contentHash: ContentHash;
      readonly createdTicks: bigint;
      readonly modifiedTicks: bigint;
    }
  | { readonly kind: 'directory'; readonly name: string; readonly fileTreeHash: FileTreeHash };

/** Occurs when entries cannot make up one directory: a name the format cannot hold, or one that is there twice. */
export class InvalidFileTreeError extends Error {
  constructor(problem: string, name: string) {
    super(`${problem}: ${JSON.stringify(name)}`);
    this.name = 'InvalidFileTreeError';
  }
}

const LINE = /^(\S+) ([FD]) (.*)$/su;
const FILE_REST = /^(\S+) (\S+) (.*)$/su;
const NEXT_STEP = 'Choose another snapshot, or put back this blob from a copy: archiving does not replace it.';

export function serializeFileTree(entries: readonly FileTreeEntry[]): Uint8Array {
  const sorted = [...entries].sort(compareEntries);
  let previous: FileTreeEntry | undefined;
  let text = '';
  for (const entry of sorted) {
    const problem = segmentProblem(entry.name);
    if (problem !== undefined) {
      throw new InvalidFileTreeError(problem, entry.name);
    }
    if (previous?.name === entry.name && previous.kind === entry.kind) {
      throw new InvalidFileTreeError(`two entries of one kind have the same name`, entry.name);
    }
    text += formatEntry(entry);
    previous = entry;
  }
  return new TextEncoder().encode(text);
}

/** @throws AriusError `blob-corrupt` for a node with any line that is not an entry, and for one without entries */
export function parseFileTree(bytes: Uint8Array): FileTreeEntry[] {
  const entries = decodeText(bytes)
    .split('\n')
    .map((line) => line.replace(/\r+$/, ''))
    .filter((line) => line !== '')
    .map(parseEntry);
  // An empty directory does not exist in the format; a node without entries can only be a lost one.
  if (entries.length === 0) {
    throw corrupt('it has no entries');
  }
  const seen = new Set<string>();
  for (const { kind, name } of entries) {
    const key = `${kind}/${name}`;
    if (seen.has(key)) {
      throw corrupt(`${JSON.stringify(name)} is there twice`);
    }
    seen.add(key);
  }
  return entries;
}

/** By name; files before directories, should a file and a directory share one. */
function compareEntries(a: FileTreeEntry, b: FileTreeEntry): number {
  if (a.name !== b.name) {
    return a.name < b.name ? -1 : 1;
  }
  return a.kind === b.kind ? 0 : a.kind === 'file' ? -1 : 1;
}

function formatEntry(entry: FileTreeEntry): string {
  return entry.kind === 'file'
    ? `${entry.contentHash} F ${formatTicks(entry.createdTicks)} ${formatTicks(entry.modifiedTicks)} ${entry.name}\n`
    : `${entry.fileTreeHash} D ${entry.name}/\n`;
}

function parseEntry(line: string): FileTreeEntry {
  try {
    const [, hash = '', kind = '', rest = ''] = LINE.exec(line) ?? [];
    return kind === 'F' ? parseFile(hash, rest) : parseDirectory(hash, rest);
  } catch (cause) {
    throw corrupt(`${JSON.stringify(line.slice(0, 200))} is not an entry`, cause);
  }
}

function parseFile(hash: string, rest: string): FileTreeEntry {
  const [, created = '', modified = '', name = ''] = FILE_REST.exec(rest) ?? [];
  return {
    kind: 'file',
    name: checkedName(name),
    contentHash: parseContentHash(hash),
    createdTicks: parseTimestamp(created),
    modifiedTicks: parseTimestamp(modified),
  };
}

function parseDirectory(hash: string, rest: string): FileTreeEntry {
  if (!rest.endsWith('/')) {
    throw new InvalidFileTreeError('a directory ends with a slash', rest);
  }
  return { kind: 'directory', name: checkedName(rest.slice(0, -1)), fileTreeHash: parseFileTreeHash(hash) };
}

function checkedName(name: string): string {
  const problem = segmentProblem(name);
  if (problem !== undefined) {
    throw new InvalidFileTreeError(problem, name);
  }
  return name;
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw corrupt('it is not UTF-8', cause);
  }
}

function corrupt(problem: string, cause?: unknown): AriusError {
  return new AriusError('blob-corrupt', `A filetree node cannot be read: ${problem}`, NEXT_STEP, { cause });
}
