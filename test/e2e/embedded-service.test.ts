import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProcessLock } from '../../src/local/process-lock.ts';
import { openStateDirectory } from '../../src/local/state-directory.ts';
import { childrenOf, firstMessage, processesOf, Workplace } from './support/agent.ts';
import { bytesOf, describeTree, writeTree } from './support/trees.ts';

let place: Workplace;
let folder: string;

beforeEach(async () => {
  place = await Workplace.create();
  folder = place.folder('files');
  await writeTree(folder, { 'a.txt': 'a', 'b/c.txt': 'c', 'large.bin': bytesOf('large', 2 * 1024 * 1024) });
});

afterEach(async () => {
  await place.close();
});

describe('serve', () => {
  it('says where it is, is shared by other commands, and ends within seconds with everything saved', async () => {
    const serve = place.start(['serve', '--json']);
    const ready = await firstMessage(serve);
    expect(ready).toMatchObject({
      messageType: 'ready',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+/),
      portalUrl: expect.stringContaining('/api/portal'),
      storage: { connectionString: expect.stringContaining('AccountKey=') },
      stateDir: place.stateDirectory,
    });
    const serviceFile = join(place.stateDirectory, 'service.json');
    expect((await stat(serviceFile)).mode & 0o777).toBe(0o600);
    const { functionKey } = JSON.parse(await readFile(serviceFile, 'utf8'));
    expect((await fetch(`${ready.url}/api/health`, { headers: { 'x-functions-key': functionKey } })).status).toBe(200);

    await place.summary(['archive', folder]);
    await place.summary(['restore', place.folder('while-serving')]);
    expect(await describeTree(place.folder('while-serving'))).toEqual(await describeTree(folder));

    serve.kill('SIGTERM');
    const [code] = await once(serve, 'exit');
    expect(code).toBe(0);
    expect(await processesOf(place.path, 0)).toEqual([]);
    await place.summary(['restore', place.folder('afterwards')]);
    expect(await describeTree(place.folder('afterwards'))).toEqual(await describeTree(folder));
  });
});

describe('a service that ends by itself', () => {
  it('ends serve with a message, and the next command starts a new one', async () => {
    const serve = place.start(['serve', '--json']);
    await firstMessage(serve);
    const [host] = await childrenOf(serve.pid, 'host/main');
    const last = firstMessage(serve);
    process.kill(host ?? 0, 'SIGKILL');
    expect(await last).toMatchObject({ messageType: 'error', code: 'service-unreachable' });
    expect(await once(serve, 'exit')).toEqual([11, null]);
    await place.summary(['archive', folder]);
  });
});

describe('two commands on one state directory', () => {
  it('take turns, and both succeed', async () => {
    const other = place.folder('other');
    await writeTree(other, { 'other.txt': 'other' });
    const outcomes = await Promise.all([place.run(['archive', folder]), place.run(['archive', other])]);
    const said = outcomes.map(({ stderr }) => stderr).join('');
    expect(
      outcomes.map(({ code }) => code),
      said,
    ).toEqual([0, 0]);
    expect(said.match(/Waiting for another command/g)).toHaveLength(1);
    const { messages } = await place.run(['snapshots', '--json']);
    expect(messages.at(-1)).toMatchObject({ messageType: 'summary' });
  });
});

describe('a command that is interrupted', () => {
  it('says so, ends with 130, and leaves no process behind', async () => {
    const child = place.start(['archive', folder]);
    let said = '';
    child.stderr?.on('data', (data) => {
      said += data;
    });
    while (!said.includes('Starting the embedded service')) await once(child.stderr ?? child, 'data');
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([130, null]);
    expect(said).toContain('interrupted');
    expect(await processesOf(place.path)).toEqual([]);
  });

  it('does not wait for another command any longer', async () => {
    const lock = ProcessLock.tryAcquire((await openStateDirectory(place.stateDirectory)).lockFile);
    const child = place.start(['archive', folder]);
    let said = '';
    child.stderr?.on('data', (data) => {
      said += data;
    });
    while (!said.includes('Waiting for another command')) await once(child.stderr ?? child, 'data');
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([130, null]);
    lock?.release();
  });
});

describe('a command that is killed', () => {
  it('leaves no process behind, and the next one goes on from what was saved', async () => {
    await place.summary(['archive', folder]);
    await writeTree(folder, { 'd.txt': 'd', 'another.bin': bytesOf('another', 8 * 1024 * 1024) });
    for (const delayMs of [2500, 4000]) {
      const child = place.start(['archive', folder, '--json']);
      await Promise.race([sleep(delayMs), once(child, 'exit')]);
      child.kill('SIGKILL');
    }
    // At once: what the killed one started may still be saving.
    await place.summary(['archive', folder]);
    await place.summary(['restore', place.folder('restored')]);
    expect(await describeTree(place.folder('restored'))).toEqual(await describeTree(folder));
  });
});
