/**
 * Which snapshot a user means. A full name or an index means one snapshot; everything else (`latest`, the beginning of a
 * name) is resolved within one source, and never guessed between several. An older snapshot is never taken for a newer one
 * that cannot be read: whose that is, is not known.
 */

import type { SnapshotInfo } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { resolveSnapshotName } from '../../repository/snapshot.ts';
import { printable } from '../printable.ts';
import type { ListedSnapshots, UnreadableSnapshot } from './list-snapshots.ts';

export interface SnapshotChoice {
  /** `latest` when not given. */
  readonly snapshot?: string;
  readonly source?: string;
}

const LATEST = 'latest';
const SHOWN_SOURCES_MAX = 5;

/** `listed`: all of the repository, so that an index means what `snapshots` shows. */
export function selectSnapshot(listed: ListedSnapshots, choice: SnapshotChoice): SnapshotInfo {
  const { snapshots: all, unreadable } = listed;
  if (all.length === 0 && unreadable.length === 0) {
    throw notFound('The repository has no snapshot yet.', 'Archive a folder first: arius-agent archive <folder>.');
  }
  const version = choice.snapshot ?? LATEST;
  const exact = exactly(all, version);
  if (exact !== undefined) {
    return checkedSource(exact, choice.source);
  }
  const candidates = all.filter((snapshot) => choice.source === undefined || snapshot.source === choice.source);
  if (candidates.length === 0 && all.length > 0) {
    const snapshot = unreadable.length === 0 ? 'No snapshot' : 'No snapshot that can be read';
    throw notFound(`${snapshot} is of the source ${printable(choice.source ?? '')}.`, `There are ${sourcesOf(all)}.`);
  }
  const isMeant = ({ name }: { name: string }): boolean => version === LATEST || begins(name, version);
  const matching = candidates.filter(isMeant);
  if (new Set(matching.map(({ source }) => source)).size > 1) {
    throw new AriusError(
      'snapshot-ambiguous',
      `Several sources have such a snapshot: ${sourcesOf(matching)}.`,
      'Choose one with --source, or give a full name or an index with --snapshot.',
    );
  }
  const newest = matching.at(-1);
  const newerUnreadable = unreadable.findLast((each) => isMeant(each) && each.name > (newest?.name ?? ''));
  if (newerUnreadable !== undefined) {
    throw cannotBeRead(newerUnreadable, newest);
  }
  if (newest === undefined) {
    throw notFound(
      `No snapshot is called ${printable(version)}.`,
      'See arius-agent snapshots; give a name, its beginning, or an index.',
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

function cannotBeRead({ name, reason }: UnreadableSnapshot, older: SnapshotInfo | undefined): AriusError {
  const next =
    older === undefined
      ? 'Choose another one with --snapshot; arius-agent snapshots lists those that can be read.'
      : `Choose an older one, for example with --snapshot ${older.name}; arius-agent snapshots lists them.`;
  return new AriusError(
    'blob-corrupt',
    `The snapshot ${printable(name)}, which may be the one you mean, cannot be read: ${printable(reason)}`,
    next,
  );
}

function notFound(detail: string, next: string): AriusError {
  return new AriusError('snapshot-not-found', detail, next);
}
