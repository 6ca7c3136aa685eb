/** What an archive run tells about single files. */

import type { ArchiveReport } from '../archive/archive-context.ts';
import { FAILED_SKIPS } from '../files/scan.ts';
import { printable } from '../printable.ts';
import type { Output } from './output.ts';

export function archiveReport(output: Output, dryRun: boolean): ArchiveReport {
  return {
    verbose: output.verbose,
    skipped({ path, reason, explanation }) {
      const fields = { path, reason };
      if (FAILED_SKIPS.has(reason)) {
        output.warning(`not archived: ${path}: ${explanation}`, fields);
      } else if (reason === 'excluded') {
        output.file(`excluded  ${path}`, { path, action: 'excluded' });
      } else {
        output.warning(`left out: ${path}: ${explanation}`, fields);
      }
    },
    changed(path) {
      output.warning(`changed while reading: ${printable(path)}: it is read again`, {
        path: printable(path),
        reason: 'changed-while-reading',
      });
    },
    failed(path, why) {
      output.warning(`not archived: ${printable(path)}: ${why}`, { path: printable(path), reason: 'failed' });
    },
    waiting(path, why) {
      output.warning(`waiting: ${printable(path)}: ${why}`, { path: printable(path), reason: 'waiting' });
    },
    pointerWithoutChunk(path) {
      output.warning(
        `not archived: ${printable(path)}: its pointer file names a content the repository does not hold`,
        {
          path: printable(path),
          reason: 'pointer-without-chunk',
        },
      );
    },
    archived(path, action) {
      output.file(`${dryRun ? 'would be ' : ''}${action.padEnd(9)} ${printable(path)}`, {
        path: printable(path),
        action,
      });
    },
  };
}
