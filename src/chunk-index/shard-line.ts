/** One line of a shard: `<contentHash> [<chunkHash>] <originalSize> <chunkSize> <tier>`, single spaces, base 10. */

import { type ContentHash, parseChunkHash, parseContentHash } from '../hashing/hashes.ts';
import { isLargeEntry, type ShardEntry } from '../repository/shard-entry.ts';
import type { AccessTier } from '../storage/ports.ts';

/** Occurs when the text of a shard is not what the format says; the caller adds which blob it was. */
export class ShardFormatError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ShardFormatError';
  }
}

/** Position + 1 is the number in the format. */
const TIERS: readonly AccessTier[] = ['hot', 'cool', 'cold', 'archive'];
const INTEGER = /^[+-]?[0-9]+$/;

export function formatShardLine(entry: ShardEntry): string {
  const tier = TIERS.indexOf(entry.tier) + 1;
  const place = isLargeEntry(entry) ? entry.contentHash : `${entry.contentHash} ${entry.chunkHash}`;
  return `${place} ${entry.originalSize} ${entry.chunkSize} ${tier}`;
}

/** Undefined for a blank line or a comment. */
export function parseShardLine(line: string): ShardEntry | undefined {
  if (line.startsWith('#') || line.trim() === '') {
    return undefined;
  }
  const fields = line.split(' ').filter((field) => field !== '');
  const [first = '', ...rest] = fields;
  if (fields.length !== 4 && fields.length !== 5) {
    throw new ShardFormatError(`a line has ${fields.length} fields, not 4 or 5`);
  }
  const contentHash = parseField('content hash', first, parseContentHash);
  const chunkHash = parseField('chunk hash', fields.length === 5 ? (rest.shift() ?? '') : contentHash, parseChunkHash);
  const [originalSize = '', chunkSize = '', tier = ''] = rest;
  return {
    contentHash,
    chunkHash,
    originalSize: parseSize('original size', originalSize, contentHash),
    chunkSize: parseSize('chunk size', chunkSize, contentHash),
    tier: parseTier(tier, contentHash),
  };
}

function parseField<T>(kind: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    throw new ShardFormatError(`a ${kind} is not 64 hex characters`, { cause: error });
  }
}

/** A size that a double cannot hold exactly is refused rather than rounded; no blob comes near it. */
function parseSize(kind: string, text: string, of: ContentHash): number {
  const size = INTEGER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new ShardFormatError(`the ${kind} of ${of} is not a size: ${JSON.stringify(text.slice(0, 40))}`);
  }
  return Math.abs(size);
}

function parseTier(text: string, of: ContentHash): AccessTier {
  const tier = INTEGER.test(text) ? TIERS[Number(text) - 1] : undefined;
  if (tier === undefined) {
    throw new ShardFormatError(`the tier of ${of} is not 1 to 4: ${JSON.stringify(text.slice(0, 40))}`);
  }
  return tier;
}
