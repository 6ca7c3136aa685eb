import { spawnSync } from 'node:child_process';
import { chmod, copyFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFunc } from '../../scripts/start-func.ts';
import { PROJECT } from './sources.ts';

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'arius-func-'));
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

describe('npm run start:func', () => {
  it('says what to install when there are no Core Tools, and ends with 1', () => {
    const script = join(PROJECT, 'scripts', 'start-func.ts');
    const { status, stderr } = spawnSync(process.execPath, [script], { env: { PATH: root }, encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stderr).toContain('there is no command "func" on the PATH');
    expect(stderr).toContain('azure-functions-core-tools@4');
  });

  it('runs them with settings of the sample and a storage emulator that ends with them', async () => {
    await copyFile(join(PROJECT, 'local.settings.sample.json'), join(root, 'local.settings.sample.json'));
    // Stands for Core Tools: says what it was given, asks the storage for an answer, and ends.
    const func = `#!/usr/bin/env node
      const fs = require('node:fs');
      if (process.argv[2] === '--version') { console.log('4.0.0'); process.exit(0); }
      const storage = process.env.AzureWebJobsStorage;
      const url = /BlobEndpoint=([^;]+)/.exec(storage)[1];
      fetch(url).then((answer) => {
        const same = storage === process.env.DurableStorage && storage === process.env.ARIUS_STORAGE_CONNECTION_STRING;
        fs.writeFileSync('seen.json', JSON.stringify({ arguments: process.argv.slice(2), url, status: answer.status, same }));
        process.exit(7);
      });`;
    await writeFile(join(root, 'func'), func);
    await chmod(join(root, 'func'), 0o755);
    const built: string[] = [];
    const environment = { ...process.env, PATH: [root, dirname(process.execPath), process.env.PATH].join(delimiter) };
    expect(await startFunc({ root, environment, build: () => void built.push(root) })).toBe(7);
    expect(built).toEqual([root]);
    const seen = JSON.parse(await readFile(join(root, 'seen.json'), 'utf8'));
    expect(seen).toMatchObject({ arguments: ['start'], same: true, status: expect.any(Number) });
    await expect(fetch(seen.url)).rejects.toThrow('fetch failed');
    const settings = JSON.parse(await readFile(join(root, 'local.settings.json'), 'utf8'));
    expect(settings.Values).toMatchObject({ FUNCTIONS_WORKER_RUNTIME: 'node', TASK_HUB: 'arius' });
    expect(JSON.stringify(settings)).not.toContain('PASSPHRASE');
    expect((await stat(join(root, 'local.settings.json'))).mode & 0o777).toBe(0o600);
  });
});
