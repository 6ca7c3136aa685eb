/**
 * Versions of orchestrations: an instance keeps the version it was started with, host.json's `defaultVersion` when the
 * start names none. A host runs only what its strategy accepts: with `CurrentOrOlder`, nothing newer than itself, so
 * that an app that was rolled back does not replay instances it does not understand.
 */

export type VersionMatchStrategy = 'none' | 'strict' | 'currentorolder';

export function mayRun(version: string, defaultVersion: string, strategy: VersionMatchStrategy): boolean {
  if (defaultVersion === '' || strategy === 'none') return true;
  const order = compareVersions(version, defaultVersion);
  return strategy === 'strict' ? order === 0 : order <= 0;
}

/** None is older than any; .NET versions (two to four numbers) by number; all others as texts, whatever their case. */
function compareVersions(left: string, right: string): number {
  const [a, b] = [numbersOf(left), numbersOf(right)];
  if (left !== '' && right !== '' && a !== undefined && b !== undefined) {
    for (let index = 0; index < 4; index += 1) {
      const difference = (a[index] ?? -1) - (b[index] ?? -1);
      if (difference !== 0) return difference;
    }
    return 0;
  }
  const [lowerLeft, lowerRight] = [left.toLowerCase(), right.toLowerCase()];
  if (lowerLeft === lowerRight) return 0;
  return lowerLeft < lowerRight ? -1 : 1;
}

function numbersOf(version: string): number[] | undefined {
  return /^\d+(\.\d+){1,3}$/.test(version) ? version.split('.').map(Number) : undefined;
}
