/** What the file system says of a file, taken before its bytes are read, so that a later change is never missed. */

import type { BigIntStats } from 'node:fs';
import { formatTicks, InvalidTimestampError, ticksOfNanoseconds } from '../../repository/timestamps.ts';

export interface FileSignals {
  readonly sizeBytes: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly inode: bigint;
  readonly device: bigint;
}

export function signalsOf(stats: BigIntStats): FileSignals {
  return {
    sizeBytes: Number(stats.size),
    mtimeNs: stats.mtimeNs,
    ctimeNs: stats.ctimeNs,
    inode: stats.ino,
    device: stats.dev,
  };
}

/** True when nothing says that the file changed between the two looks. */
export function sameSignals(a: FileSignals, b: FileSignals): boolean {
  return (
    a.sizeBytes === b.sizeBytes &&
    a.mtimeNs === b.mtimeNs &&
    a.ctimeNs === b.ctimeNs &&
    a.inode === b.inode &&
    a.device === b.device
  );
}

/**
 * The times a tree entry carries. Linux has no creation time that every file system keeps, so *created* is the older of
 * the two times there are: otherwise two runs over the same files could disagree.
 */
export function treeTimes(signals: FileSignals): { createdTicks: bigint; modifiedTicks: bigint } {
  const modifiedTicks = ticksOfNanoseconds(signals.mtimeNs);
  const changedTicks = ticksOfNanoseconds(signals.ctimeNs);
  const changedIsOlder = changedTicks < modifiedTicks;
  return { createdTicks: changedIsOlder ? changedTicks : modifiedTicks, modifiedTicks };
}

/** Some file systems hold times that the format cannot write (years 1 to 9999). */
export function hasTreeTimes(signals: FileSignals): boolean {
  try {
    const { createdTicks, modifiedTicks } = treeTimes(signals);
    formatTicks(createdTicks);
    formatTicks(modifiedTicks);
    return true;
  } catch (error) {
    if (error instanceof InvalidTimestampError) {
      return false;
    }
    throw error;
  }
}
