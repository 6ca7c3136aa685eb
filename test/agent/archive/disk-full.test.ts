import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/run-command.ts';

/** Runs a piece of the agent while a very small file system is mounted at a folder, in a namespace of its own. */
function onSmallDisk(folder: string, program: string): { code: string; left: string[] } {
  const script = `mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"`;
  const unshare = process.getuid?.() === 0 ? ['-m'] : ['-Urm'];
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program];
  const { stdout, stderr } = spawnSync('unshare', [...unshare, 'sh', '-c', script, folder, ...node], {
    encoding: 'utf8',
  });
  if (stdout === '') {
    throw new Error(stderr);
  }
  return JSON.parse(stdout) as { code: string; left: string[] };
}

const source = (file: string): string => JSON.stringify(join(import.meta.dirname, '../../../src/agent', file));

describe('a full disk', () => {
  it('fails the spool with disk-full, and leaves no body behind', () => {
    const folder = temporaryFolder();
    const result = onSmallDisk(
      folder,
      `
      import { readdirSync } from 'node:fs';
      import { Spool } from ${source('archive/spool.ts')};
      async function* body() { for (let i = 0; i < 100; i++) yield Buffer.alloc(65536, i); }
      const code = await new Spool(${JSON.stringify(folder)}).write(body()).then(() => 'written', (e) => e.code);
      console.log(JSON.stringify({ code, left: readdirSync(${JSON.stringify(folder)}) }));`,
    );
    expect(result).toEqual({ code: 'disk-full', left: [] });
  });

  it("is told by the run's database as well", () => {
    const folder = temporaryFolder();
    const result = onSmallDisk(
      folder,
      `
      import { openRunFolder } from ${source('state/run-folder.ts')};
      import { spoolError } from ${source('archive/spool.ts')};
      const run = await openRunFolder(${JSON.stringify(folder)}, 'CREATE TABLE t (a BLOB)');
      let code = 'written';
      try {
        const insert = run.database.prepare('INSERT INTO t VALUES (zeroblob(60000))');
        for (let i = 0; i < 100; i++) { run.database.beforeWrite(); insert.run(); }
        run.database.db.exec('COMMIT');
      } catch (error) {
        code = spoolError(error, 'x').code;
      }
      console.log(JSON.stringify({ code, left: [] }));`,
    );
    expect(result.code).toBe('disk-full');
  });

  it('fails a restore with disk-full, and leaves no half file', () => {
    const folder = temporaryFolder();
    const result = onSmallDisk(
      folder,
      `
      import { readdirSync } from 'node:fs';
      import { RestoreTarget } from ${source('restore/restore-target.ts')};
      import { Hasher } from ${JSON.stringify(join(import.meta.dirname, '../../../src/hashing/hasher.ts'))};
      async function* body() { for (let i = 0; i < 100; i++) yield Buffer.alloc(65536, i); }
      const target = await RestoreTarget.open(${JSON.stringify(folder)});
      const code = await target.receive(body(), 'x', new Hasher()).then(() => 'written', (e) => e.code);
      await target.close();
      console.log(JSON.stringify({ code, left: readdirSync(${JSON.stringify(folder)}) }));`,
    );
    expect(result).toEqual({ code: 'disk-full', left: [] });
  });
});
