import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openRunFolder } from '../../../src/agent/state/run-folder.ts';
import { temporaryFolder } from '../support/run-command.ts';

const SCHEMA = 'CREATE TABLE t (a)';
const later = (): number => Date.now() + 60_000;

/** A run in a process of its own, killed while its folder is open. */
function killedRun(parent: string): void {
  const program = `
    const { openRunFolder } = await import(${JSON.stringify(join(import.meta.dirname, '../../../src/agent/state/run-folder.ts'))});
    const folder = await openRunFolder(${JSON.stringify(parent)}, ${JSON.stringify(SCHEMA)});
    folder.database.beforeWrite();
    folder.database.prepare('INSERT INTO t VALUES (1)').run();
    await folder.spool.write((async function* () { yield Buffer.from('body'); })());
    process.kill(process.pid, 'SIGKILL');`;
  try {
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' });
  } catch {
    // Killed, as intended.
  }
}

describe('openRunFolder', () => {
  it('FT-20: removes what a killed run left', async () => {
    const parent = temporaryFolder();
    killedRun(parent);
    const [left] = readdirSync(parent);
    expect(readdirSync(join(parent, left ?? ''))).toEqual(expect.arrayContaining(['body-1', 'run.sqlite']));
    const folder = await openRunFolder(parent, SCHEMA);
    expect(existsSync(join(parent, left ?? ''))).toBe(false);
    await folder.remove();
  });

  it('FT-21, AR-18: two runs at a time have a folder each; neither takes the other for dead', async () => {
    const parent = temporaryFolder();
    const one = await openRunFolder(parent, SCHEMA);
    const two = await openRunFolder(parent, SCHEMA, later());
    expect(readdirSync(parent)).toHaveLength(2);
    one.database.prepare('INSERT INTO t VALUES (1)').run();
    await two.remove();
    await one.remove();
  });

  it('leaves a folder alone whose run is just starting, and removes it when it never does', async () => {
    const parent = temporaryFolder();
    mkdirSync(join(parent, 'arius-run-starting'));
    await (await openRunFolder(parent, SCHEMA)).remove();
    expect(readdirSync(parent)).toEqual(['arius-run-starting']);
    await (await openRunFolder(parent, SCHEMA, later())).remove();
    expect(readdirSync(parent)).toEqual([]);
  });

  it('removes nothing that it did not make', async () => {
    const parent = temporaryFolder();
    writeFileSync(join(parent, 'mine.txt'), 'x');
    mkdirSync(join(parent, 'my-folder'));
    await (await openRunFolder(parent, SCHEMA, later())).remove();
    expect(readdirSync(parent).sort()).toEqual(['mine.txt', 'my-folder']);
  });

  it('FT-22: leaves nothing behind when it is removed', async () => {
    const parent = join(temporaryFolder(), 'made', 'on', 'demand');
    const folder = await openRunFolder(parent, SCHEMA);
    await folder.spool.write(
      (async function* () {
        yield Buffer.from('body');
      })(),
    );
    await folder.remove();
    expect(readdirSync(parent)).toEqual([]);
  });

  it('says which folder cannot be used, and how to choose another', async () => {
    const parent = join(temporaryFolder(), 'file');
    writeFileSync(parent, 'x');
    await expect(openRunFolder(parent, SCHEMA)).rejects.toMatchObject({
      code: 'folder-unreadable',
      next: expect.stringContaining('--spool') as string,
    });
  });
});
