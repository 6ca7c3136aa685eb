/** Reads the tree of a snapshot into the plan, breadth first, entering only directories that lead to wanted files. */

import pMap from 'p-map';
import type { FileTreeHash } from '../../hashing/hashes.ts';
import { DIRECTORY_ENTRIES_PER_PAGE, FILETREE_READ_WORKERS } from '../../limits.ts';
import type { PathFilter } from '../files/path-filter.ts';
import type { FiletreeReader } from '../snapshots/filetree-reader.ts';
import { joinPath } from '../state/paths.ts';
import type { PlannedDirectory, RestorePlan } from './restore-plan.ts';

export async function walkTree(options: {
  readonly plan: RestorePlan;
  readonly root: FileTreeHash;
  readonly reader: FiletreeReader;
  readonly filter: PathFilter;
  readonly signal: AbortSignal;
  onFile?(path: string): void;
}): Promise<void> {
  const { plan, reader, filter } = options;
  async function readDirectory(directory: PlannedDirectory): Promise<void> {
    for await (const page of reader.read(directory.hash)) {
      for (const entry of page) {
        const path = joinPath(directory.path, entry.name);
        if (entry.kind === 'directory') {
          if (filter.enters(path)) {
            plan.addDirectory(path, entry.fileTreeHash);
          }
        } else if (filter.wants(path)) {
          plan.addFile(path, entry.contentHash, entry.modifiedTicks);
          options.onFile?.(path);
        }
      }
    }
  }

  plan.addDirectory('', options.root);
  for (let afterId = 0; ; ) {
    const directories = plan.directories(afterId, DIRECTORY_ENTRIES_PER_PAGE);
    const last = directories.at(-1);
    if (last === undefined) {
      return;
    }
    await pMap(directories, readDirectory, { concurrency: FILETREE_READ_WORKERS, signal: options.signal });
    afterId = last.id;
  }
}
