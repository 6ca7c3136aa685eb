import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pathProblem, segmentProblem } from '../../src/repository/repository-path.ts';
import { vectors } from '../support/bytes.ts';

describe('repository paths', () => {
  it.each(vectors('pointers-and-paths.json').paths as { path: string; valid: boolean }[])(
    '$path: $valid',
    ({ path, valid }) => {
      expect(pathProblem(path) === undefined).toBe(valid);
    },
  );

  it('FT-31 FT-32 FT-33: refuse blank, rooted, dot-dot and backslash segments', () => {
    for (const path of [' ', 'a/\u2003/b', '/a', 'C:/a', 'c:\\a', '..', 'a/../b', 'a\\b']) {
      expect(pathProblem(path)).toBeTypeOf('string');
    }
  });

  it('FT-29: keep leading and trailing spaces', () => {
    expect(segmentProblem(' a ')).toBeUndefined();
  });

  it('refuse every control character, and what has no UTF-8 form', () => {
    for (let code = 0; code < 0xa0; code += 1) {
      const isControl = code < 0x20 || code >= 0x7f;
      const isSlash = code === 0x2f || code === 0x5c;
      expect(segmentProblem(`a${String.fromCharCode(code)}b`) !== undefined, `U+${code.toString(16)}`).toBe(
        isControl || isSlash,
      );
    }
    expect(segmentProblem('a\ud800b')).toMatch(/Unicode/);
    expect(segmentProblem('a\udc00\ud800b')).toMatch(/Unicode/);
    expect(segmentProblem('😀')).toBeUndefined();
  });

  it('are as good as their segments', () => {
    const segment = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a', '.', '..', ' ', 'b c', '~'));
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1 }), (segments) => {
        const path = segments.join('/');
        const isDriveRoot = /^[A-Za-z]:[/\\]/.test(path);
        const good = segments.every((name) => segmentProblem(name) === undefined) && !isDriveRoot;
        expect(path === '' || (pathProblem(path) === undefined) === good).toBe(true);
      }),
    );
  });
});
