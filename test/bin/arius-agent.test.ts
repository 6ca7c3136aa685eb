import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const BIN = new URL('../../bin', import.meta.url).pathname;

/** A folder with our `bin` and whatever a test puts beside it, as a project that was just installed. */
let root: string;
/** Preloaded to make the running Node look old: it says so, and cannot replace its process. */
let oldNode: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'arius-bin-'));
  await cp(BIN, join(root, 'bin'), { recursive: true });
  oldNode = join(root, 'old-node.cjs');
  await writeFile(
    oldNode,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.11.1' } });
     Object.defineProperty(process, 'execve', { value: undefined });`,
  );
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

/** A shell script in the place of the project's own Node. */
async function bundleNode(script: string): Promise<void> {
  await mkdir(join(root, 'node_modules', 'node', 'bin'), { recursive: true });
  const path = join(root, 'node_modules', 'node', 'bin', 'node');
  await writeFile(path, `#!/bin/sh\nif [ "$1" = --version ]; then echo v22.23.3; exit 0; fi\n${script}\n`);
  await chmod(path, 0o755);
}

function run(args: string[], preload: string[] = []): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [...preload, join(root, 'bin', 'arius-agent.mjs'), ...args], { encoding: 'utf8' });
}

const AS_OLD = (): string[] => ['--require', oldNode];

describe('arius-agent on a Node that is too old', () => {
  it('runs on the Node that the project brings, with its arguments, heap bound and exit code', async () => {
    await bundleNode('echo "$@"; echo "arenas $MALLOC_ARENA_MAX"; exit 7');
    const { status, stdout, stderr } = run(['archive', 'a folder'], AS_OLD());
    expect(stderr).toBe('');
    expect(status).toBe(7);
    expect(stdout).toMatch(/--max-old-space-size=\d+ .*run-agent\.mjs archive a folder\n/);
    expect(stdout).toContain('arenas 2');
  });

  it('run by npm, means folders from where the user stands', async () => {
    await bundleNode('pwd');
    const elsewhere = await mkdtemp(join(tmpdir(), 'arius-cwd-'));
    const env = { ...process.env, npm_lifecycle_event: 'arius', INIT_CWD: elsewhere };
    const args = [...AS_OLD(), join(root, 'bin', 'arius-agent.mjs'), 'snapshots'];
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env, cwd: root });
    expect(stdout).toBe(`${elsewhere}\n`);
    await rm(elsewhere, { recursive: true });
  });

  it('says to run npm ci when nothing is installed', () => {
    const { status, stderr } = run(['snapshots'], AS_OLD());
    expect(status).toBe(1);
    expect(stderr).toContain('Node 22.15 or newer is needed; this is Node 20.11.1.');
    expect(stderr).toContain('Run "npm ci"');
  });

  it('says how to approve the install script when npm blocked it', async () => {
    await mkdir(join(root, 'node_modules', 'node'), { recursive: true });
    const { status, stderr } = run(['snapshots'], AS_OLD());
    expect(status).toBe(1);
    expect(stderr).toContain('npm install-scripts approve node');
    expect(stderr).toContain('npm rebuild node');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('says so when the Node that the project brings does not run on this machine', async () => {
    await bundleNode('exit 0');
    await writeFile(join(root, 'node_modules', 'node', 'bin', 'node'), 'not a program for this machine');
    const { status, stderr } = run(['snapshots'], AS_OLD());
    expect(status).toBe(1);
    expect(stderr).toContain('does not run on this machine');
  });

  it.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)('passes %s on and ends as its child does', async (signal) => {
    await bundleNode(`trap 'exit 130' TERM HUP INT; echo ready; while :; do sleep 0.05; done`);
    const child = spawn(process.execPath, [...AS_OLD(), join(root, 'bin', 'arius-agent.mjs'), 'serve'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(createInterface({ input: child.stdout }), 'line');
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([130, null]);
  });
});

describe('arius-agent on a Node that is new enough', () => {
  it('says to run npm ci when nothing is installed', () => {
    const { status, stderr } = run(['snapshots']);
    expect(status).toBe(1);
    expect(stderr).toContain('npm ci');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('replaces its own process by the agent, with the same arguments', async () => {
    await mkdir(join(root, 'node_modules'));
    await mkdir(join(root, 'dist', 'src', 'agent'), { recursive: true });
    await writeFile(
      join(root, 'dist', 'src', 'agent', 'main.js'),
      `export async function runAgent(argv, { embedded }) {
         console.log(JSON.stringify({ argv, pid: process.pid, flags: process.execArgv, start: typeof embedded.start }));
         return 4;
       }`,
    );
    await writeFile(join(root, 'package.json'), '{"type":"module"}');
    const child = spawn(process.execPath, [join(root, 'bin', 'arius-agent.mjs'), 'ls', '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const [code] = await once(child, 'exit');
    const seen = JSON.parse(line);
    expect(code).toBe(4);
    expect(seen).toMatchObject({ argv: ['ls', '--json'], pid: child.pid, start: 'function' });
    expect(seen.flags.join(' ')).toMatch(/--max-old-space-size=\d+/);
  });
});
