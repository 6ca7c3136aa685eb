/** Which entries of a folder are not archived: the format's own defaults, and what the user names by globs. */

import picomatch from 'picomatch';

/** Left behind by NAS systems and desktops; the same lists as other clients of the format (exact names, any case). */
const EXCLUDED_DIRECTORY_NAMES: ReadonlySet<string> = new Set([
  '@eadir',
  'eadir',
  'synoresource',
  // Half-restored files of a restore that was killed (restore-target.ts).
  '.arius-restore',
]);
const EXCLUDED_FILE_NAMES: ReadonlySet<string> = new Set(['autorun.ini', 'thumbs.db', '.ds_store']);

export interface Exclusions {
  excludesFile(path: string, name: string): boolean;
  /** An excluded directory is not entered. */
  excludesDirectory(path: string, name: string): boolean;
}

/**
 * A glob without a slash is tested against the name, at any depth; one with a slash against the path below the archived
 * folder. A directory that matches `--exclude` is left out whole. When there are `--include` globs, only files that
 * match one of them are archived.
 */
export function createExclusions(include: readonly string[] = [], exclude: readonly string[] = []): Exclusions {
  const excluded = matcherOf(exclude);
  const included = include.length === 0 ? () => true : matcherOf(include);
  return {
    excludesFile(path, name) {
      return EXCLUDED_FILE_NAMES.has(name.toLowerCase()) || excluded(path, name) || !included(path, name);
    },
    excludesDirectory(path, name) {
      return EXCLUDED_DIRECTORY_NAMES.has(name.toLowerCase()) || excluded(path, name);
    },
  };
}

function matcherOf(globs: readonly string[]): (path: string, name: string) => boolean {
  const byName: picomatch.Matcher[] = [];
  const byPath: picomatch.Matcher[] = [];
  for (const glob of globs) {
    const trimmed = glob.replace(/\/+$/, '');
    const pattern = trimmed.replace(/^\.?\//, '');
    (trimmed.includes('/') ? byPath : byName).push(picomatch(pattern, { dot: true }));
  }
  return (path, name) => byName.some((matches) => matches(name)) || byPath.some((matches) => matches(path));
}
