/**
 * Which snapshot a user means. A full name or an index means one snapshot; everything else (`latest`, the beginning of a
 * name) is resolved within one source, and never guessed between several.
 */

import type { SnapshotInfo } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { resolveSnapshotName } from '../../repository/snapshot.ts';
import { printable } from '../printable.ts';

export interface SnapshotChoice {
  /** `latest` when not given. */
  readonly snapshot?: string;
  readonly source?: string;
}

const LATEST = 'latest';
const SHOWN_SOURCES_MAX = 5;

/** `snapshots`: all of the repository, oldest first, so that an index means what `snapshots` shows. */
export async function selectSnapshot(
  snapshots: AsyncIterable<SnapshotInfo>,
  choice: SnapshotChoice,
): Promise<SnapshotInfo> {
  const all: SnapshotInfo[] = [];
  for await (const snapshot of snapshots) {
    all.push(snapshot);
  }
  if (all.length === 0) {
    throw notFound('The repository has no snapshot yet.', 'Archive a folder first: arius-agent archive <folder>.');
  }
  const version = choice.snapshot ?? LATEST;
  const exact = exactly(all, version);
  if (exact !== undefined) {
    return checkedSource(exact, choice.source);
  }
  const candidates = all.filter((snapshot) => choice.source === undefined || snapshot.source === choice.source);
  if (candidates.length === 0) {
    throw notFound(`No snapshot is of the source ${printable(choice.source ?? '')}.`, `There are ${sourcesOf(all)}.`);
  }
  const matching = version === LATEST ? candidates : candidates.filter(({ name }) => begins(name, version));
  const newest = matching.at(-1);
  if (newest === undefined) {
    throw notFound(
      `No snapshot is called ${printable(version)}.`,
      'See arius-agent snapshots; give a name, its beginning, or an index.',
    );
  }
  if (new Set(matching.map(({ source }) => source)).size > 1) {
    throw new AriusError(
      'snapshot-ambiguous',
      `Several sources have such a snapshot: ${sourcesOf(matching)}.`,
      'Choose one with --source, or give a full name or an index with --snapshot.',
    );
  }
  return newest;
}

/** By its full name, or by its index, which names no other. */
function exactly(all: readonly SnapshotInfo[], version: string): SnapshotInfo | undefined {
  const named = all.find(({ name }) => name.toUpperCase() === version.toUpperCase());
  if (named !== undefined || version === LATEST || !/^\d+$/.test(version)) {
    return named;
  }
  const names = all.map(({ name }) => name);
  const resolved = resolveSnapshotName(names, version);
  const index = names.indexOf(resolved ?? '');
  return index === Number(version) - 1 ? all[index] : undefined;
}

function begins(name: string, version: string): boolean {
  return name.toUpperCase().startsWith(version.toUpperCase());
}

function checkedSource(snapshot: SnapshotInfo, source: string | undefined): SnapshotInfo {
  if (source !== undefined && snapshot.source !== source) {
    throw notFound(
      `The snapshot ${snapshot.name} is of ${sourceText(snapshot.source)}, not of ${printable(source)}.`,
      'Leave --source away, or choose another snapshot.',
    );
  }
  return snapshot;
}

function sourcesOf(snapshots: readonly SnapshotInfo[]): string {
  const sources = [...new Set(snapshots.map(({ source }) => source))];
  const shown = sources.slice(0, SHOWN_SOURCES_MAX).map(sourceText).join(', ');
  const more = sources.length - SHOWN_SOURCES_MAX;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** A snapshot of another client names no source. */
export function sourceText(source: string | null): string {
  return source === null ? '(no source)' : printable(source);
}

function notFound(detail: string, next: string): AriusError {
  return new AriusError('snapshot-not-found', detail, next);
}
