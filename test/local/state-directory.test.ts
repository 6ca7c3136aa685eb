import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStateDirectory } from '../../src/local/state-directory.ts';

const MODULE = new URL('../../src/local/state-directory.ts', import.meta.url).href;

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'arius-state-'));
});

afterEach(async () => {
  await rm(parent, { recursive: true, force: true });
});

describe('openStateDirectory', () => {
  it('creates the folder for this user alone, and takes it again', async () => {
    const path = join(parent, 'a', 'b');
    const state = await openStateDirectory(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(state.lockFile.startsWith(path)).toBe(true);
    await writeFile(state.logFile, 'later');
    expect(await openStateDirectory(path)).toEqual(state);
  });

  it('closes an empty folder that others could look into', async () => {
    const path = join(parent, 'empty');
    await mkdir(path, { mode: 0o755 });
    await openStateDirectory(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
  });

  it('refuses a folder that holds other files, and leaves it as it is', async () => {
    const path = join(parent, 'documents');
    await mkdir(path, { mode: 0o755 });
    await chmod(path, 0o755);
    await writeFile(join(path, 'letter.txt'), 'dear');
    await expect(openStateDirectory(path)).rejects.toMatchObject({ code: 'local-state-unusable' });
    expect(await readdir(path)).toEqual(['letter.txt']);
    expect((await stat(path)).mode & 0o777).toBe(0o755);
  });

  it('refuses a folder of another layout', async () => {
    await writeFile(join(parent, 'arius-local.json'), '{"schemaVersion":99}');
    await expect(openStateDirectory(parent)).rejects.toThrow('layout 99');
  });

  it('refuses a path below a file', async () => {
    await writeFile(join(parent, 'file'), '');
    await expect(openStateDirectory(join(parent, 'file', 'state'))).rejects.toMatchObject({
      code: 'local-state-unusable',
      next: expect.stringContaining('--local'),
    });
  });

  it('refuses a folder that this user may not write', async () => {
    const path = join(parent, 'foreign');
    await openStateDirectory(path);
    await chmod(parent, 0o755);
    await chmod(path, 0o555);
    // The superuser, as whom tests may run, is refused nothing: become somebody else first.
    const script = `
      const { openStateDirectory } = await import(${JSON.stringify(MODULE)});
      if (process.getuid?.() === 0) { process.setgid?.(65534); process.setuid?.(65534); }
      await openStateDirectory(${JSON.stringify(path)}).catch((error) => console.log(error.code, error.message));
    `;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
    expect(stdout).toMatch(/^local-state-unusable .*EACCES/);
  });
});
