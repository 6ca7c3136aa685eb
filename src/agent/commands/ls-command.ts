/** `arius-agent ls [path]`: what a snapshot holds. */

import type { FileTreeHash } from '../../hashing/hashes.ts';
import { formatTicks } from '../../repository/timestamps.ts';
import { type CommandContext, withSession } from '../command.ts';
import { normalize } from '../files/path-filter.ts';
import { counted } from '../output/format.ts';
import { printable } from '../printable.ts';
import type { CommonOptions } from '../settings.ts';
import { FiletreeReader } from '../snapshots/filetree-reader.ts';
import { listSnapshots } from '../snapshots/list-snapshots.ts';
import { type ListedEntry, listTree } from '../snapshots/list-tree.ts';
import { selectSnapshot } from '../snapshots/snapshot-selection.ts';

export interface LsCommandOptions extends CommonOptions {
  readonly snapshot?: string;
  readonly source?: string;
  readonly recursive?: boolean;
}

export async function lsCommand(
  context: CommandContext,
  pathArgument: string | undefined,
  options: LsCommandOptions,
): Promise<number> {
  const path = normalize(pathArgument ?? '');
  await withSession(context, options, { create: undefined }, async (session) => {
    const snapshot = selectSnapshot(await listSnapshots(session.api, context.output), options);
    const reader = new FiletreeReader({ ...session, signal: context.abort.signal });
    let entries = 0;
    for await (const entry of listTree({
      api: session.api,
      reader,
      root: snapshot.rootHash as FileTreeHash,
      path,
      recursive: options.recursive === true,
    })) {
      entries++;
      context.output.result(lineOf(entry), fieldsOf(entry));
    }
    context.output.summary(
      [
        `${counted(entries, 'entry', 'entries')} in snapshot ${snapshot.name}${path === '' ? '' : ` at ${printable(path)}`}`,
      ],
      { command: 'ls', snapshot: snapshot.name, source: snapshot.source, path, entries },
    );
  });
  return 0;
}

const SIZE_WIDTH = 15;
const TIME_LENGTH = 'YYYY-MM-DD HH:MM:SS'.length;

/** Time (UTC), size in bytes, path; directories end with a slash. */
function lineOf(entry: ListedEntry): string {
  if (entry.kind === 'directory') {
    return `${''.padEnd(TIME_LENGTH)} ${''.padStart(SIZE_WIDTH)}  ${printable(entry.path)}/`;
  }
  const time = formatTicks(entry.modifiedTicks ?? 0n)
    .slice(0, TIME_LENGTH)
    .replace('T', ' ');
  const size = entry.sizeBytes === undefined ? '?' : String(entry.sizeBytes);
  return `${time} ${size.padStart(SIZE_WIDTH)}  ${printable(entry.path)}`;
}

function fieldsOf(entry: ListedEntry): Record<string, unknown> {
  return entry.kind === 'directory'
    ? { path: entry.path, kind: 'directory', fileTreeHash: entry.hash }
    : {
        path: entry.path,
        kind: 'file',
        size: entry.sizeBytes ?? null,
        modified: formatTicks(entry.modifiedTicks ?? 0n).replace('+00:00', 'Z'),
        contentHash: entry.hash,
      };
}
