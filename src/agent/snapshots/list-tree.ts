/** What a snapshot holds at a path: the entries of a directory, or of everything below it, with the sizes of files. */

import { AriusError } from '../../errors.ts';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { HASHES_PER_LOOKUP_MAX } from '../../limits.ts';
import type { FileTreeEntry } from '../../repository/filetree.ts';
import { printable } from '../printable.ts';
import { joinPath } from '../state/paths.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';
import type { FiletreeReader } from './filetree-reader.ts';

export interface ListedEntry {
  readonly path: string;
  readonly kind: 'file' | 'directory';
  /** Undefined for a directory, and for a file that the chunk index does not know. */
  readonly sizeBytes: number | undefined;
  readonly modifiedTicks: bigint | undefined;
  readonly hash: string;
}

export interface ListOptions {
  readonly api: Pick<RepositoryApi, 'lookup'>;
  readonly reader: Pick<FiletreeReader, 'read'>;
  readonly root: FileTreeHash;
  /** Normalized; empty for the root. */
  readonly path: string;
  readonly recursive: boolean;
}

export async function* listTree(options: ListOptions): AsyncGenerator<ListedEntry, void, void> {
  const found = await find(options);
  if (found.kind === 'file') {
    yield* withSizes(options, [{ path: options.path, entry: found.entry }]);
  } else {
    yield* listDirectory(options, options.path, found.hash);
  }
}

async function* listDirectory(
  options: ListOptions,
  directory: string,
  hash: FileTreeHash,
): AsyncGenerator<ListedEntry, void, void> {
  const subdirectories: { path: string; hash: FileTreeHash }[] = [];
  for await (const page of options.reader.read(hash)) {
    for (let from = 0; from < page.length; from += HASHES_PER_LOOKUP_MAX) {
      const entries = page.slice(from, from + HASHES_PER_LOOKUP_MAX);
      yield* withSizes(
        options,
        entries.map((entry) => ({ path: joinPath(directory, entry.name), entry })),
      );
      if (options.recursive) {
        for (const entry of entries) {
          if (entry.kind === 'directory') {
            subdirectories.push({ path: joinPath(directory, entry.name), hash: entry.fileTreeHash });
          }
        }
      }
    }
  }
  for (const subdirectory of subdirectories) {
    yield* listDirectory(options, subdirectory.path, subdirectory.hash);
  }
}

/** Follows the path from the root, one node for each of its directories. */
async function find(
  options: ListOptions,
): Promise<{ kind: 'directory'; hash: FileTreeHash } | { kind: 'file'; entry: FileTreeEntry }> {
  let hash = options.root;
  const segments = options.path === '' ? [] : options.path.split('/');
  for (const [index, segment] of segments.entries()) {
    const entry = await entryNamed(options, hash, segment);
    if (entry?.kind === 'file' && index === segments.length - 1) {
      return { kind: 'file', entry };
    }
    if (entry?.kind !== 'directory') {
      throw new AriusError(
        'not-found',
        `The snapshot holds nothing at ${printable(options.path)}.`,
        'See what it holds with arius-agent ls, without a path.',
      );
    }
    hash = entry.fileTreeHash;
  }
  return { kind: 'directory', hash };
}

async function entryNamed(options: ListOptions, hash: FileTreeHash, name: string): Promise<FileTreeEntry | undefined> {
  let found: FileTreeEntry | undefined;
  for await (const page of options.reader.read(hash)) {
    found ??= page.find((entry) => entry.name === name);
  }
  return found;
}

async function* withSizes(
  options: ListOptions,
  entries: readonly { path: string; entry: FileTreeEntry }[],
): AsyncGenerator<ListedEntry, void, void> {
  const hashes = new Set(entries.flatMap(({ entry }) => (entry.kind === 'file' ? [entry.contentHash] : [])));
  const known = hashes.size === 0 ? [] : (await options.api.lookup([...hashes], { purpose: 'archive' })).known;
  const sizes = new Map<string, number>(known.map((row) => [row.contentHash, row.originalSize]));
  for (const { path, entry } of entries) {
    yield entry.kind === 'file'
      ? {
          path,
          kind: 'file',
          sizeBytes: sizes.get(entry.contentHash),
          modifiedTicks: entry.modifiedTicks,
          hash: entry.contentHash,
        }
      : { path, kind: 'directory', sizeBytes: undefined, modifiedTicks: undefined, hash: entry.fileTreeHash };
  }
}
