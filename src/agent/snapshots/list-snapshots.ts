/**
 * All snapshots of the repository, those that cannot be read among them: each of these is told, because whoever reads the
 * list would otherwise take it for whole.
 */

import type { SnapshotInfo, SnapshotList } from '../../contract/schemas.ts';
import type { Output } from '../output/output.ts';
import { printable } from '../printable.ts';
import type { RepositoryApi } from '../transport/repository-api.ts';

export type UnreadableSnapshot = NonNullable<SnapshotList['unreadable']>[number];

/** Both oldest first, as their names order them. */
export interface ListedSnapshots {
  readonly snapshots: readonly SnapshotInfo[];
  readonly unreadable: readonly UnreadableSnapshot[];
}

export async function listSnapshots(
  api: Pick<RepositoryApi, 'snapshotPages'>,
  output: Pick<Output, 'warning'>,
): Promise<ListedSnapshots> {
  const snapshots: SnapshotInfo[] = [];
  const unreadable: UnreadableSnapshot[] = [];
  for await (const page of api.snapshotPages()) {
    snapshots.push(...page.snapshots);
    unreadable.push(...(page.unreadable ?? []));
  }
  for (const { name, reason } of unreadable) {
    output.warning(`The snapshot ${printable(name)} cannot be read: ${printable(reason)}`, {
      snapshot: name,
      reason: 'unreadable',
    });
  }
  return { snapshots, unreadable };
}
