/**
 * Walks the filetree nodes a run added, before its snapshot is published: each node exists, decodes, and has the hash it is
 * named by; each content hash in it resolves through the index. Subtrees that the newest snapshot of the same source holds
 * at the same place were walked then and are passed over. The walk goes in slices; what is left is kept in staging, so that
 * memory is bounded by depth, not by the number of files.
 */

import { LRUCache } from 'lru-cache';
import { AriusError } from '../errors.ts';
import { type ContentHash, type FileTreeHash, parseFileTreeHash } from '../hashing/hashes.ts';
import { HASHES_PER_LOOKUP_MAX, VERIFY_CHILDREN_ON_STACK, VERIFY_SEEN_MAX, VERIFY_WORKERS } from '../limits.ts';
import type { FileTreeEntry } from '../repository/filetree.ts';
import { openFileTree } from './filetree-reader.ts';
import type { OpenRepository } from './open-repository.ts';

/** A node that is still to be walked. */
export interface OpenNode {
  /** Where it is in the tree; the root is the empty text. */
  readonly path: string;
  readonly hash: FileTreeHash;
  /** The node at this place in the snapshot before, which was verified when that was published. */
  readonly base: FileTreeHash | null;
  /** Its files, and its subdirectories up to this name, have been seen to. */
  readonly after: string | null;
}

export class FileTreeVerifier {
  readonly #repository: OpenRepository;
  readonly #stack: OpenNode[];
  /** What is on the stack, or was: walked once, wherever it stands. */
  readonly #seen = new LRUCache<FileTreeHash, true>({ max: VERIFY_SEEN_MAX });
  readonly #contents: ContentResolver;
  #nodes = 0;

  constructor(repository: OpenRepository, stack: readonly OpenNode[]) {
    this.#repository = repository;
    this.#stack = [...stack];
    this.#contents = new ContentResolver(repository);
  }

  /** Nodes read by this slice. */
  get nodes(): number {
    return this.#nodes;
  }

  /**
   * Walks until nothing is left, or about `nodesMax` nodes were read.
   * @returns what is left
   * @throws AriusError `snapshot-incomplete` naming path and hash, `blob-corrupt`
   */
  async walk(nodesMax: number): Promise<readonly OpenNode[]> {
    while (this.#stack.length > 0 && this.#nodes < nodesMax) {
      const next = this.#stack.splice(-VERIFY_WORKERS);
      await Promise.all(next.map(async (node) => await this.#visit(node)));
    }
    await this.#contents.resolve();
    return this.#stack;
  }

  async #visit(node: OpenNode): Promise<void> {
    this.#nodes += 1;
    const entries = await openFileTree(this.#repository, node.hash);
    if (entries === undefined) {
      throw incomplete(node.path === '' ? 'the root' : `the folder "${node.path}"`, `filetrees/${node.hash}`);
    }
    const base = new BaseDirectories(this.#repository, node.base);
    const children: OpenNode[] = [];
    let more = false;
    try {
      for await (const group of entries) {
        for (const entry of group) {
          more = (await this.#take(node, entry, base, children)) || more;
        }
        if (more && node.after !== null) {
          // Files and hash of this node were seen to at the first visit.
          break;
        }
      }
    } finally {
      await base.close();
    }
    const last = children.at(-1);
    if (more && last !== undefined) {
      this.#stack.push({ ...node, after: nameOf(last.path) });
    }
    this.#stack.push(...children);
  }

  /** @returns true when a subdirectory had to be left for the next visit of its parent */
  async #take(node: OpenNode, entry: FileTreeEntry, base: BaseDirectories, children: OpenNode[]): Promise<boolean> {
    const path = node.path === '' ? entry.name : `${node.path}/${entry.name}`;
    if (entry.kind === 'file') {
      if (node.after === null) {
        await this.#contents.add(entry.contentHash, path);
      }
      return false;
    }
    if (node.after !== null && entry.name <= node.after) {
      return false;
    }
    const before = await base.hashOf(entry.name);
    if (before === entry.fileTreeHash || this.#seen.has(entry.fileTreeHash)) {
      return false;
    }
    if (children.length >= VERIFY_CHILDREN_ON_STACK) {
      return true;
    }
    this.#seen.set(entry.fileTreeHash, true);
    children.push({ path, hash: entry.fileTreeHash, base: before ?? null, after: null });
    return false;
  }
}

/** Resolves content hashes through the index, as many at a time as one lookup takes. */
class ContentResolver {
  readonly #repository: OpenRepository;
  #waiting = new Map<ContentHash, string>();

  constructor(repository: OpenRepository) {
    this.#repository = repository;
  }

  async add(contentHash: ContentHash, path: string): Promise<void> {
    this.#waiting.set(contentHash, path);
    if (this.#waiting.size >= HASHES_PER_LOOKUP_MAX) {
      await this.resolve();
    }
  }

  async resolve(): Promise<void> {
    const asked = this.#waiting;
    if (asked.size === 0) {
      return;
    }
    this.#waiting = new Map();
    const known = await this.#repository.index.lookup([...asked.keys()]);
    for (const [contentHash, path] of asked) {
      if (!known.has(contentHash)) {
        throw incomplete(`the file "${path}"`, `the content ${contentHash}`);
      }
    }
  }
}

/**
 * The subdirectories of the node before, read beside the new one: both are in the same order, so one pass finds every name.
 * A node before that cannot be read saves nothing and harms nothing.
 */
class BaseDirectories {
  readonly #repository: OpenRepository;
  readonly #hash: FileTreeHash | null;
  /** Opened when the first name is asked for: most folders have no subfolders, and need no second read. */
  #groups: Promise<AsyncGenerator<FileTreeEntry[]> | undefined> | undefined;
  #group: readonly FileTreeEntry[] = [];
  #at = 0;

  constructor(repository: OpenRepository, hash: FileTreeHash | null) {
    this.#repository = repository;
    this.#hash = hash;
  }

  /** Names have to be asked for in ascending order. */
  async hashOf(name: string): Promise<FileTreeHash | undefined> {
    for (;;) {
      const entry = this.#group[this.#at];
      if (entry === undefined) {
        if (!(await this.#nextGroup())) {
          return undefined;
        }
      } else if (entry.name > name) {
        return undefined;
      } else {
        this.#at += 1;
        if (entry.kind === 'directory' && entry.name === name) {
          return entry.fileTreeHash;
        }
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#groups)?.return(undefined);
  }

  async #open(): Promise<AsyncGenerator<FileTreeEntry[]> | undefined> {
    this.#groups ??= this.#hash === null ? Promise.resolve(undefined) : openFileTree(this.#repository, this.#hash);
    return await this.#groups;
  }

  async #nextGroup(): Promise<boolean> {
    try {
      const next = await (await this.#open())?.next();
      this.#group = next?.value ?? [];
      this.#at = 0;
      return next !== undefined && next.done !== true;
    } catch (error) {
      if (error instanceof AriusError && error.code === 'blob-corrupt') {
        return false;
      }
      throw error;
    }
  }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function incomplete(what: string, missing: string): AriusError {
  return new AriusError(
    'snapshot-incomplete',
    `No snapshot was published: ${what} needs ${missing}, which is not stored.`,
    'Archive again with --rehash: what is missing is uploaded then, whatever was known before.',
  );
}

/** What is left of a walk, as it is kept between two slices. */
export function serializeStack(stack: readonly OpenNode[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(stack));
}

export function parseStack(bytes: Uint8Array): OpenNode[] {
  const nodes = JSON.parse(new TextDecoder().decode(bytes)) as OpenNode[];
  return nodes.map((node) => ({
    path: node.path,
    hash: parseFileTreeHash(node.hash),
    base: node.base === null ? null : parseFileTreeHash(node.base),
    after: node.after,
  }));
}
