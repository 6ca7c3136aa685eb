import { type ContentHash, isHashText, parseContentHash } from '../hashing/hashes.ts';

/** Pointer files stand beside a binary, or in its place, and hold its content hash. */

const POINTER_SUFFIX = '.pointer.arius';

/** In any case of letters. */
export function isPointerName(name: string): boolean {
  return name.toLowerCase().endsWith(POINTER_SUFFIX);
}

/** The hash, from the current form or the legacy JSON; undefined for anything else. */
export function parsePointerFile(text: string): ContentHash | undefined {
  const trimmed = text.trim();
  if (isHashText(trimmed)) {
    return parseContentHash(trimmed);
  }
  const hash = trimmed.startsWith('{') ? legacyHash(trimmed) : undefined;
  return hash !== undefined && isHashText(hash) ? parseContentHash(hash) : undefined;
}

function legacyHash(text: string): string | undefined {
  try {
    const json = JSON.parse(text) as Record<string, unknown>;
    const key = Object.keys(json).find((name) => name.toLowerCase() === 'binaryhash');
    const value = key === undefined ? undefined : json[key];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
