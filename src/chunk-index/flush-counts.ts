/** What a flush of one root did, repeated attempts included. */

export interface FlushCounters {
  readonly rowsRead: number;
  /** Downloads; a shard that was cached at its ETag is none. */
  readonly shardsRead: number;
  readonly shardsWritten: number;
  readonly shardsSplit: number;
  readonly shardsDeleted: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

export type FlushCounts = { -readonly [Counter in keyof FlushCounters]: number };

export function noCounts(): FlushCounts {
  return {
    rowsRead: 0,
    shardsRead: 0,
    shardsWritten: 0,
    shardsSplit: 0,
    shardsDeleted: 0,
    bytesRead: 0,
    bytesWritten: 0,
  };
}
