import { spawn } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../conformance/host/sample.ts';
import { SAMPLE_APP, SAMPLE_SETTINGS } from '../../conformance/host/target.ts';
import { linesOf, startSample, temporaryDirectory } from './harness.ts';

const HOST_PROCESS = new URL('../../../src/local/host-process.ts', import.meta.url).href;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('secrets', () => {
  it('reach the app, but neither arguments nor the environment the child was started with', async () => {
    process.env.SOME_SECRET_OF_THE_PARENT = 'parents-secret';
    const sample = await startSample({
      secrets: { SAMPLE_SECRET: 'childs-secret' },
      settings: { SAMPLE_SETTING: 's' },
    });
    delete process.env.SOME_SECRET_OF_THE_PARENT;
    const environment = (await (await sample.fetch('/api/environment')).json()) as Record<string, string>;
    expect(environment).toMatchObject({ SAMPLE_SECRET: 'childs-secret', SAMPLE_SETTING: 's' });
    expect(environment.WEBSITE_HOSTNAME).toBe(new URL(sample.host.url).host);
    expect(environment.SOME_SECRET_OF_THE_PARENT).toBeUndefined();
    for (const file of ['environ', 'cmdline']) {
      const text = await readFile(`/proc/${sample.host.pid}/${file}`, 'utf8');
      expect(text).not.toContain('secret');
      expect(text).not.toContain(sample.host.masterKey);
    }
  });
});

describe('output of the app itself', () => {
  it('is forwarded without the secrets it was given', async () => {
    const sample = await startSample({ secrets: { SAMPLE_SECRET: 'a-secret-value' } });
    await sample.fetch('/api/print');
    await until(
      () => Promise.resolve(sample.lines),
      (lines) => lines.includes('printed *** here'),
    );
  });
});

describe('keys', () => {
  it('are kept in the state directory, readable by the owner only', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory });
    await first.host.stop();
    const second = await startSample({ stateDirectory });
    expect(second.host.masterKey).toBe(first.host.masterKey);
    expect(second.host.functionKey).toBe(first.host.functionKey);
    const file = join(stateDirectory, 'keys.json');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const keys = JSON.parse(await readFile(file, 'utf8')) as { functions: Record<string, string> };
    const init = { method: 'PUT', headers: { 'x-functions-key': keys.functions.httpEcho ?? '' } };
    expect((await second.fetch('/api/echo/a/1', init)).status).toBe(201);
    expect((await second.fetch('/api/client/statusAll', { ...init, method: 'POST' })).status).toBe(401);
  });
});

describe('the end', () => {
  it('lets a running function answer, and then exits with 0', async () => {
    const sample = await startSample({ logFile: join(await temporaryDirectory(), 'log') });
    const slow = sample.fetch('/api/slow?ms=400');
    await until(
      () => sample.log(),
      (lines) => lines.includes('slow begins'),
    );
    await sample.host.stop();
    expect(await (await slow).text()).toBe('done');
    expect(await sample.host.exited).toBe(0);
  });

  it('comes although a function does not end', async () => {
    const sample = await startSample({ logFile: join(await temporaryDirectory(), 'log') });
    const slow = sample.fetch('/api/slow?ms=60000').catch(() => undefined);
    await until(
      () => sample.log(),
      (lines) => lines.includes('slow begins'),
    );
    process.kill(sample.host.pid, 'SIGTERM');
    expect(await sample.host.exited).toBe(0);
    await slow;
  });

  it('comes when the parent dies, even by kill -9', async () => {
    const directory = await temporaryDirectory();
    const script = join(directory, 'parent.mjs');
    const options = JSON.stringify({
      appDirectory: SAMPLE_APP,
      settings: SAMPLE_SETTINGS,
    });
    await writeFile(
      script,
      `import { startHostProcess } from '${HOST_PROCESS}';
       const host = await startHostProcess({ ...${options}, stateDirectory: undefined });
       console.log(host.pid);
       setInterval(() => undefined, 1000);`,
    );
    const parent = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [pid] = (await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve))).toString().split('\n');
    expect(isAlive(Number(pid))).toBe(true);
    parent.kill('SIGKILL');
    await until(
      () => Promise.resolve(isAlive(Number(pid))),
      (alive) => !alive,
      5000,
    );
  });

  it('comes with a clear line when the app has an uncaught exception', async () => {
    const sample = await startSample();
    await sample.fetch('/api/crash');
    expect(await sample.host.exited).toBe(1);
    expect(sample.lines.at(-1)).toContain('Uncaught exception in the app: Error: nobody catches this');
  });
});

describe('the start is refused', () => {
  async function appWith(code: string, main = 'app.mjs'): Promise<string> {
    const appDirectory = await temporaryDirectory();
    await writeFile(join(appDirectory, 'package.json'), JSON.stringify({ type: 'module', main }));
    await writeFile(join(appDirectory, 'host.json'), '{"version":"2.0"}');
    const library = (name: string): string => JSON.stringify(import.meta.resolve(name));
    const imports = `import functions from ${library('@azure/functions')};\nimport df from ${library('durable-functions')};`;
    await writeFile(join(appDirectory, 'app.mjs'), `${imports}\nconst { app, output } = functions;\n${code}`);
    return appDirectory;
  }

  it.each([
    ['when "main" names no file', '', 'dist/*.js', 'names no file. Is it built?'],
    ['when nothing is registered', '', 'app.mjs', 'registered no function'],
    ['when a file throws', 'throw new Error("at import")', 'app.mjs', 'Error: at import'],
    [
      'for HTTP streaming',
      'app.setup({ enableHttpStream: true }); app.get("h", () => {})',
      'app.mjs',
      'no HTTP streaming',
    ],
    [
      'for one name used twice',
      'app.get("same", () => {}); df.app.activity("Same", { handler: () => {} })',
      'app.mjs',
      'A function with the name "Same" exists already',
    ],
  ])('%s', async (_, code, main, reason) => {
    const appDirectory = await appWith(code, main);
    await expect(startSample({ appDirectory })).rejects.toThrow(reason);
  });

  it('for everything the host does not offer, all of it in one message', async () => {
    const appDirectory = await appWith(`
      df.app.entity("entity", () => {});
      app.eventHub("hub", { eventHubName: "h", connection: "C", handler: () => {} });
      app.get("out", { extraOutputs: [output.storageQueue({ queueName: "q", connection: "C" })], handler: () => {} });
      const retry = { strategy: "fixedDelay", maxRetryCount: 2, delayInterval: 1 };
      app.timer("again", { schedule: "0 0 * * * *", retry, handler: () => {} });`);
    const start = startSample({ appDirectory });
    await expect(start).rejects.toThrow('entity: Durable entities are not supported');
    await expect(start).rejects.toThrow('hub: The trigger eventHubTrigger is not supported');
    await expect(start).rejects.toThrow('out: The output binding "queue" is not supported');
    await expect(start).rejects.toThrow('again: The option "retry" is not supported');
  });

  it('when another process uses the state directory, until that one has died', async () => {
    const stateDirectory = await temporaryDirectory();
    const first = await startSample({ stateDirectory });
    await expect(startSample({ stateDirectory })).rejects.toThrow('Another process uses');
    await first.host.kill();
    await startSample({ stateDirectory });
  });

  it('when the journal is damaged before its end', async () => {
    const stateDirectory = await temporaryDirectory();
    await writeFile(join(stateDirectory, 'journal.jsonl'), '{"journal":1}\n[{"op":\n[]\n');
    await expect(startSample({ stateDirectory })).rejects.toThrow('is damaged at line 2');
    expect(await linesOf(join(stateDirectory, 'journal.jsonl'))).toHaveLength(3);
  });
});
