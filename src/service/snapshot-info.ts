/** A snapshot as the HTTP contract shows it. */

import type { SnapshotInfo } from '../contract/schemas.ts';
import { formatTicks } from '../repository/timestamps.ts';
import type { Snapshot } from './snapshot-catalog.ts';

export function snapshotInfoOf({ name, manifest }: Snapshot): SnapshotInfo {
  return {
    name,
    timestamp: formatTicks(manifest.timestampTicks),
    rootHash: manifest.rootHash,
    fileCount: manifest.fileCount,
    originalSize: manifest.originalSize,
    ariusVersion: manifest.ariusVersion,
    source: manifest.source ?? null,
    runId: manifest.runId ?? null,
  };
}
