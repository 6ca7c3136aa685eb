import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const PROJECT = new URL('../..', import.meta.url).pathname;

/** A small project with our build: one function, one module. */
let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'arius-build-'));
  for (const file of [
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'scripts/build.mjs',
    'bin/node-runtime.mjs',
  ]) {
    await cp(join(PROJECT, file), join(root, file));
  }
  await mkdir(join(root, 'node_modules'));
  for (const name of ['typescript', '@typescript', '@types', 'undici-types']) {
    await symlink(join(PROJECT, 'node_modules', name), join(root, 'node_modules', name));
  }
  await mkdir(join(root, 'src'));
  await mkdir(join(root, 'functions'));
  await writeFile(join(root, 'src', 'answer.ts'), 'export const ANSWER: number = 42;\n');
  await writeFile(
    join(root, 'functions', 'first.ts'),
    "import { ANSWER } from '../src/answer.ts';\nconsole.log(ANSWER);\n",
  );
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

async function build(): Promise<{ code: number; stderr: string }> {
  const child = spawn(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (data) => {
    stderr += data;
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, stderr };
}

describe('the build', () => {
  it('makes dist, and has nothing to do the second time', async () => {
    expect((await build()).stderr).toContain('Built dist.');
    expect(await readFile(join(root, 'dist', 'functions', 'first.js'), 'utf8')).toContain('../src/answer.js');
    expect((await build()).stderr).toContain('dist is up to date.');
  });

  it('leaves nothing of a source that is gone', async () => {
    await build();
    await rm(join(root, 'functions', 'first.ts'));
    expect((await build()).stderr).toContain('Built dist.');
    expect(existsSync(join(root, 'dist', 'functions', 'first.js'))).toBe(false);
    expect(existsSync(join(root, 'dist', 'src', 'answer.js'))).toBe(true);
  });

  it('keeps the last good dist when the sources do not compile', async () => {
    await build();
    await writeFile(join(root, 'src', 'answer.ts'), 'export const ANSWER: number = "not a number";\n');
    const { code, stderr } = await build();
    expect(code).toBe(1);
    expect(stderr).toContain('answer.ts');
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(existsSync(join(root, 'dist', 'src', 'answer.js'))).toBe(true);
    expect((await readdir(root)).filter((name) => name.startsWith('dist'))).toEqual(['dist']);
  });

  it('is done once by commands that start together', async () => {
    const results = await Promise.all([build(), build(), build(), build()]);
    expect(results.map((result) => result.code)).toEqual([0, 0, 0, 0]);
    expect(results.filter((result) => result.stderr.includes('Built dist.'))).toHaveLength(1);
  });
});
