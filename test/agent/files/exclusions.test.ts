import { describe, expect, it } from 'vitest';
import { createExclusions } from '../../../src/agent/files/exclusions.ts';

const name = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function excludesFile(path: string, include: string[] = [], exclude: string[] = []): boolean {
  return createExclusions(include, exclude).excludesFile(path, name(path));
}

function excludesDirectory(path: string, exclude: string[] = []): boolean {
  return createExclusions([], exclude).excludesDirectory(path, name(path));
}

describe('exclusions', () => {
  it.each(['@eaDir', 'eaDir', 'SynoResource', '@EADIR', 'a/b/@eaDir', 'x/.arius-restore'])(
    'leaves out the folder %s by default',
    (path) => {
      expect(excludesDirectory(path)).toBe(true);
    },
  );

  it.each(['autorun.ini', 'Thumbs.db', '.DS_Store', 'a/b/thumbs.DB'])('leaves out the file %s by default', (path) => {
    expect(excludesFile(path)).toBe(true);
  });

  it('takes defaults as whole names, a folder name for folders only and a file name for files only', () => {
    expect(excludesDirectory('my@eaDir')).toBe(false);
    expect(excludesFile('@eaDir')).toBe(false);
    expect(excludesDirectory('thumbs.db')).toBe(false);
    expect(excludesFile('.hidden')).toBe(false);
  });

  it('tests a glob without a slash against the name, at any depth', () => {
    expect(excludesFile('a/b/c.tmp', [], ['*.tmp'])).toBe(true);
    expect(excludesFile('.cache', [], ['*'])).toBe(true);
    expect(excludesDirectory('x/node_modules', ['node_modules'])).toBe(true);
    expect(excludesDirectory('x/node_modules', ['node_modules/'])).toBe(true);
    expect(excludesFile('a/b/c.tmpx', [], ['*.tmp'])).toBe(false);
  });

  it('tests a glob with a slash against the path below the folder', () => {
    expect(excludesFile('build/out/x.js', [], ['build/**'])).toBe(true);
    expect(excludesFile('src/build/x.js', [], ['build/**'])).toBe(false);
    expect(excludesDirectory('build', ['/build'])).toBe(true);
    expect(excludesDirectory('src/build', ['/build'])).toBe(false);
    expect(excludesDirectory('src/build', ['./build'])).toBe(false);
  });

  it('archives only included files when there are inclusions, and excludes among those', () => {
    expect(excludesFile('a/b.jpg', ['*.jpg'])).toBe(false);
    expect(excludesFile('a/b.txt', ['*.jpg', '*.png'])).toBe(true);
    expect(excludesFile('a/b.jpg', ['*.jpg'], ['b.*'])).toBe(true);
    expect(createExclusions(['*.jpg']).excludesDirectory('a', 'a')).toBe(false);
  });

  it('keeps defaults beside the globs of the user', () => {
    expect(excludesFile('thumbs.db', ['thumbs.db'])).toBe(true);
  });
});
