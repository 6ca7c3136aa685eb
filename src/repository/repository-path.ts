/**
 * Which paths a repository can hold: relative, `/`-separated, the root is the empty string. Case counts and nothing is
 * normalised. What a repository cannot hold is refused with a reason a user understands, never skipped in silence.
 */

const DRIVE_ROOT = /^[A-Za-z]:[/\\]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that the format refuses
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const BLANK = /^\p{White_Space}*$/u;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Why a single name cannot be stored; undefined when it can. */
export function segmentProblem(segment: string): string | undefined {
  if (BLANK.test(segment)) {
    return 'a name must not be blank';
  }
  if (segment === '.' || segment === '..') {
    return `"${segment}" is not a name`;
  }
  if (segment.includes('/') || segment.includes('\\')) {
    return 'a name must not contain a slash or backslash';
  }
  if (CONTROL_CHARACTER.test(segment)) {
    return 'a name must not contain control characters';
  }
  if (LONE_SURROGATE.test(segment)) {
    return 'a name must be valid Unicode';
  }
  return undefined;
}

/** Why a path cannot be stored; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  if (path === '') {
    return undefined;
  }
  if (DRIVE_ROOT.test(path)) {
    return 'a path must not start with a drive';
  }
  if (path.startsWith('/') || path.endsWith('/')) {
    return 'a path must neither start nor end with a slash';
  }
  if (path.includes('//')) {
    return 'a path must not contain empty names';
  }
  for (const segment of path.split('/')) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) {
      return problem;
    }
  }
  return undefined;
}
