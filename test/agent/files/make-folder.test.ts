import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder } from '../../../src/agent/files/make-folder.ts';

describe('makeFolder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'arius-make-folder-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('creates what is missing, with the mode asked for', async () => {
    await makeFolder(join(folder, 'a', 'b', 'c'), 0o700);
    expect(statSync(join(folder, 'a', 'b')).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'a', 'b', 'c')).isDirectory()).toBe(true);
  });

  it('leaves a folder that is there, also behind a link', async () => {
    symlinkSync(folder, join(folder, 'link'));
    await makeFolder(folder);
    await makeFolder(join(folder, 'link'));
    await makeFolder(join(folder, 'link', 'new'));
    expect(statSync(join(folder, 'new')).isDirectory()).toBe(true);
  });

  it('says what stands in the way', async () => {
    writeFileSync(join(folder, 'file'), '');
    symlinkSync(join(folder, 'nowhere'), join(folder, 'broken'));
    await expect(makeFolder(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
    await expect(makeFolder(join(folder, 'file', 'x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(makeFolder(join(folder, 'broken'))).rejects.toMatchObject({ code: 'EEXIST' });
  });

  it('ends where the file system never creates anything', async () => {
    await expect(makeFolder('/proc/arius-nowhere/x/y')).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
