/** `--path`: whole segments only, so "dir" does not match "directory". Without a path, everything is wanted. */

import { pathProblem } from '../../repository/repository-path.ts';
import { printable } from '../printable.ts';
import { usage } from '../settings.ts';

export class PathFilter {
  readonly #paths: readonly string[];
  readonly #met = new Set<string>();

  constructor(paths: readonly string[]) {
    this.#paths = paths.map(normalize).includes('') ? [] : [...new Set(paths.map(normalize))];
  }

  /** The file is one of the paths, or lies below one. */
  wants(path: string): boolean {
    if (this.#paths.length === 0) {
      return true;
    }
    const found = this.#paths.filter((wanted) => isWithin(path, wanted));
    for (const wanted of found) {
      this.#met.add(wanted);
    }
    return found.length > 0;
  }

  /** The directory lies below one of the paths, or on the way to one. */
  enters(directory: string): boolean {
    return (
      this.#paths.length === 0 ||
      this.#paths.some((wanted) => isWithin(directory, wanted) || isWithin(wanted, directory))
    );
  }

  /** Paths for which no file was wanted. */
  unmet(): string[] {
    return this.#paths.filter((path) => !this.#met.has(path));
  }
}

export function normalize(path: string): string {
  const trimmed = path.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
  const normalized = trimmed === '.' ? '' : trimmed;
  const problem = pathProblem(normalized);
  if (problem !== undefined) {
    throw usage(`"${printable(path)}" is not a path of a repository: ${problem}.`, 'Give a path as ls shows it.');
  }
  return normalized;
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || directory === '' || path.startsWith(`${directory}/`);
}
