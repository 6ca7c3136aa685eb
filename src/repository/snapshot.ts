import { AriusError } from '../errors.ts';
import { type FileTreeHash, parseFileTreeHash } from '../hashing/hashes.ts';
import { formatTicksShort, millisecondsOfTicks, parseTimestamp, ticksOfMilliseconds } from './timestamps.ts';

/**
 * A snapshot: a manifest of JSON that names the root of a filetree, stored under a name made of its own time. The order
 * of names is the order of time. `source` and `runId` are our own; other clients ignore them and do not write them.
 */
export interface SnapshotManifest {
  readonly timestampTicks: bigint;
  readonly rootHash: FileTreeHash;
  readonly fileCount: number;
  /** Bytes, duplicates counted each time. */
  readonly originalSize: number;
  readonly ariusVersion: string;
  readonly source?: string;
  readonly runId?: string;
}

const NAME = /^(\d{4}-\d\d-\d\dT\d\d)(\d\d)(\d\d\.\d{3})Z$/;
/** Digits only and shorter than a year: never the beginning of a name, so always an index. */
const YEAR_DIGITS = 4;

/** The leaf under `snapshots/`: `2026-03-22T150000.000Z`; milliseconds are cut, not rounded. */
export function snapshotNameOf(timestampTicks: bigint): string {
  const [date = '', time = ''] = new Date(millisecondsOfTicks(timestampTicks)).toISOString().split('T');
  return `${date}T${time.replaceAll(':', '')}`;
}

/** The time in a leaf, to the millisecond; undefined for a text that is not a snapshot's name. */
export function parseSnapshotName(leaf: string): bigint | undefined {
  const match = NAME.exec(leaf);
  if (match === null) {
    return undefined;
  }
  const milliseconds = Date.parse(`${match[1]}:${match[2]}:${match[3]}Z`);
  if (Number.isNaN(milliseconds)) {
    return undefined;
  }
  const ticks = ticksOfMilliseconds(milliseconds);
  return snapshotNameOf(ticks) === leaf ? ticks : undefined;
}

export function serializeSnapshot(manifest: SnapshotManifest): Uint8Array {
  const { timestampTicks, rootHash, fileCount, originalSize, ariusVersion, source, runId } = manifest;
  if (!isCount(fileCount) || !isCount(originalSize)) {
    throw new RangeError('fileCount and originalSize of a snapshot must be whole numbers from 0');
  }
  // The order of the properties is part of the format; undefined ones are left out.
  const json = {
    timestamp: formatTicksShort(timestampTicks),
    rootHash,
    fileCount,
    originalSize,
    ariusVersion,
    source,
    runId,
  };
  return new TextEncoder().encode(JSON.stringify(json));
}

/** @throws AriusError `blob-corrupt` when a property is missing or cannot be */
export function parseSnapshot(bytes: Uint8Array): SnapshotManifest {
  try {
    const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof json !== 'object' || json === null) {
      throw new TypeError('not an object');
    }
    const { source, runId, ...required } = json as Record<string, unknown>;
    return {
      timestampTicks: parseTimestamp(text(required, 'timestamp')),
      rootHash: parseFileTreeHash(text(required, 'rootHash')),
      fileCount: count(required, 'fileCount'),
      originalSize: count(required, 'originalSize'),
      ariusVersion: text(required, 'ariusVersion'),
      ...(typeof source === 'string' ? { source } : {}),
      ...(typeof runId === 'string' ? { runId } : {}),
    };
  } catch (cause) {
    throw new AriusError(
      'blob-corrupt',
      `A snapshot cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Use another snapshot, or run a check of the repository.',
      { cause },
    );
  }
}

/**
 * Which snapshot a user means: `latest`, a 1-based index (oldest first), or the beginning of a name in any case, of which
 * the newest wins. Undefined: none.
 */
export function resolveSnapshotName(namesAscending: readonly string[], version: string): string | undefined {
  if (version === 'latest') {
    return namesAscending.at(-1);
  }
  const wanted = version.toUpperCase();
  const named = namesAscending.findLast((name) => name.toUpperCase().startsWith(wanted));
  const isNumber = /^\d+$/.test(version);
  // "2" begins every name of this millennium, yet whoever types it means the second snapshot. A year stays a year.
  if (isNumber && (version.length < YEAR_DIGITS || named === undefined)) {
    return Number(version) === 0 ? undefined : namesAscending[Number(version) - 1];
  }
  return named;
}

function text(json: Record<string, unknown>, key: string): string {
  const value = json[key];
  if (typeof value !== 'string') {
    throw new TypeError(`${key} is missing or not a text`);
  }
  return value;
}

function count(json: Record<string, unknown>, key: string): number {
  const value = json[key];
  if (!isCount(value)) {
    throw new TypeError(`${key} is missing or not a whole number from 0`);
  }
  return value;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
