/** `arius-agent snapshots`: all of the repository, oldest first, with the index that `--snapshot` takes. */

import type { SnapshotInfo } from '../../contract/schemas.ts';
import { type CommandContext, withSession } from '../command.ts';
import { counted, formatBytes } from '../output/format.ts';
import type { CommonOptions } from '../settings.ts';
import { listSnapshots } from '../snapshots/list-snapshots.ts';
import { sourceText } from '../snapshots/snapshot-selection.ts';

export interface SnapshotsCommandOptions extends CommonOptions {
  readonly source?: string;
}

interface IndexedSnapshot extends SnapshotInfo {
  readonly index: number;
}

export async function snapshotsCommand(context: CommandContext, options: SnapshotsCommandOptions): Promise<number> {
  await withSession(context, options, { create: undefined }, async (session) => {
    const { snapshots } = await listSnapshots(session.api, context.output);
    // The index counts all snapshots, so that it means the same with and without --source.
    const shown = snapshots
      .map((snapshot, at): IndexedSnapshot => ({ index: at + 1, ...snapshot }))
      .filter(({ source }) => options.source === undefined || source === options.source);
    context.output.summary(linesOf(shown), { command: 'snapshots', snapshots: shown });
  });
  return 0;
}

function linesOf(snapshots: readonly IndexedSnapshot[]): string[] {
  if (snapshots.length === 0) {
    return ['No snapshots.'];
  }
  return [
    ...snapshots.map(
      (snapshot) =>
        `${String(snapshot.index).padStart(4)}  ${snapshot.name}  ${counted(snapshot.fileCount, 'file').padStart(15)}  ` +
        `${formatBytes(snapshot.originalSize).padStart(10)}  ${sourceText(snapshot.source)}`,
    ),
    counted(snapshots.length, 'snapshot'),
  ];
}
