/**
 * The three hashes of the repository format. All are 64 lower-case hex characters; the brands keep one from being
 * passed where another is meant.
 */

export type ContentHash = string & { readonly __brand: 'ContentHash' };
export type ChunkHash = string & { readonly __brand: 'ChunkHash' };
export type FileTreeHash = string & { readonly __brand: 'FileTreeHash' };

const HASH_TEXT = /^[0-9a-fA-F]{64}$/;

function parseHash(text: string, kind: string): string {
  if (!HASH_TEXT.test(text)) {
    throw new InvalidHashError(kind, text);
  }
  return text.toLowerCase();
}

/** Occurs when a text is not 64 hex characters. */
export class InvalidHashError extends Error {
  constructor(kind: string, text: string) {
    super(`Not a ${kind}: ${JSON.stringify(text.slice(0, 80))} (expected 64 hex characters)`);
    this.name = 'InvalidHashError';
  }
}

/** Parsers take upper case and lower it, as the format says; anything else is an InvalidHashError. */
export function parseContentHash(text: string): ContentHash {
  return parseHash(text, 'content hash') as ContentHash;
}

export function parseChunkHash(text: string): ChunkHash {
  return parseHash(text, 'chunk hash') as ChunkHash;
}

export function parseFileTreeHash(text: string): FileTreeHash {
  return parseHash(text, 'filetree hash') as FileTreeHash;
}

export function isHashText(text: string): boolean {
  return HASH_TEXT.test(text);
}
