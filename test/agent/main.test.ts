import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { EmbeddedService, EmbeddedServiceLauncher, EmbeddedServiceOptions } from '../../src/agent/embedded.ts';
import { runAgent } from '../../src/agent/main.ts';
import type { FakeService } from './support/fake-service.ts';
import { noLauncher, startFakeService, type TestAgent, temporaryFolder, testAgent } from './support/run-command.ts';

function folderWith(name = 'a.txt', content = 'hello'): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, name), content);
  return folder;
}

interface Launched {
  readonly launcher: EmbeddedServiceLauncher;
  readonly starts: EmbeddedServiceOptions[];
  readonly calls: string[];
}

/** A launcher whose service is the fake; it passes on the passphrase as the real one does. */
function launch(service: FakeService, shared = false): Launched {
  const starts: EmbeddedServiceOptions[] = [];
  const calls: string[] = [];
  const embedded: EmbeddedService = {
    url: service.url,
    functionKey: service.functionKey,
    portalUrl: `${service.url}/api/portal`,
    storageConnectionString: 'UseDevelopmentStorage=true',
    stateDirectory: '/state',
    shared,
    failed: new Promise(() => undefined),
    async saved() {
      calls.push('saved');
    },
    async stop() {
      calls.push('stop');
    },
  };
  return {
    starts,
    calls,
    launcher: {
      async start(options) {
        starts.push(options);
        calls.push('start');
        service.passphrase = options.passphrases.default;
        return embedded;
      },
    },
  };
}

describe('wrong usage', () => {
  it.each([
    [[], 'No command was given'],
    [['restor'], "unknown command 'restor'"],
    [['archive'], "missing required argument 'folder'"],
    [['archive', 'a', 'b'], 'too many arguments'],
    [['archive', 'a', '--nonsense'], "unknown option '--nonsense'"],
    [['restore', 'x', '--snapshot'], 'argument missing'],
    [['archive', ''], 'name of the folder is empty'],
    [['restore', ' '], 'name of the folder is empty'],
    [['archive', '/tmp', '--tier', 'warm'], 'not a tier'],
    [['archive', '/tmp', '--upload-limit', 'fast'], 'not an upload limit'],
    [['archive', '/tmp', '--upload-limit', '0'], 'not an upload limit'],
    [['archive', '/tmp', '--source', ''], 'cannot name a source'],
    [['snapshots', '--url', 'not an address'], 'not an address'],
    [['snapshots', '--url', 'ftp://x'], 'not an address'],
    [['snapshots', '-r', 'Not A Name'], 'not a name of a repository'],
    [['ls', '../x', '--url', 'http://127.0.0.1:1'], 'not a path'],
    [['snapshots', '--passphrase-file', '/does/not/exist'], 'cannot be read'],
  ])('%j ends with 2 and one line', async (argv, text) => {
    const { exitCode, stdout, stderr } = await testAgent(undefined).run(argv, { bare: true });
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    const last = stderr.trimEnd().split('\n').at(-1) ?? '';
    expect(last).toMatch(/^error [a-z-]+: .+/);
    expect(last).toContain(text);
  });

  it('--tier archive is refused before anything is started', async () => {
    const { exitCode, stderr } = await testAgent(undefined).run(['archive', folderWith(), '--tier', 'archive'], {
      bare: true,
    });
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(
      /^error tier-not-supported: The archive tier cannot be chosen yet.*Choose hot, cool or cold/,
    );
  });

  it('with --json, the error is a JSON line, and nothing is on stderr', async () => {
    const { exitCode, lines, stderr } = await testAgent(undefined).run(['archive', '--json'], { bare: true });
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: '' });
    expect(lines).toMatchObject([{ messageType: 'error', code: 'usage', next: expect.any(String) as string }]);
  });
});

describe('help and version', () => {
  it.each(['archive', 'restore', 'ls', 'snapshots', 'serve'])(
    '%s has a help text, which is a result',
    async (command) => {
      const { exitCode, stdout, stderr } = await testAgent(undefined).run([command, '--help'], { bare: true });
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toContain(`arius-agent ${command}`);
      expect(stdout).toContain('--repository');
    },
  );

  it('lists the commands, and prints a version', async () => {
    const agent = testAgent(undefined);
    expect((await agent.run(['--help'], { bare: true })).stdout).toMatch(/archive.*restore.*ls.*snapshots.*serve/s);
    expect((await agent.run(['--version'], { bare: true })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe('what can be wrong with a service', () => {
  const tryIt = (url: string): ReturnType<TestAgent['run']> =>
    testAgent(undefined).run(['snapshots', '--url', url, '--json'], { bare: true });

  it('an address at which nothing listens: exit 11', async () => {
    const { exitCode, lines } = await tryIt('http://127.0.0.1:1');
    expect(exitCode).toBe(11);
    expect(lines).toMatchObject([
      { messageType: 'error', code: 'service-unreachable', message: expect.stringContaining('127.0.0.1:1') as string },
    ]);
  });

  it.each([
    [200, '<html>hello</html>'],
    [404, '<html>no</html>'],
    [200, '{"status":"fine"}'],
  ])('an address at which something else answers %i %s: exit 11', async (status, body) => {
    const server = createServer((_, response) => {
      response.writeHead(status);
      response.end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { exitCode } = await tryIt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.close();
    expect(exitCode).toBe(11);
  });

  it('a state folder of the agent that cannot be used is named', async () => {
    const service = await startFakeService();
    const file = join(folderWith(), 'a.txt');
    const { exitCode, lines } = await testAgent(service, join(file, 'agent')).run(['archive', folderWith()]);
    expect(exitCode).toBe(1);
    expect(lines.at(-1)).toMatchObject({
      code: 'folder-unreadable',
      next: expect.stringContaining('ARIUS_AGENT_DIR') as string,
    });
  });

  it('a wrong key: exit 13', async () => {
    const service = await startFakeService();
    service.functionKey = 'another';
    const { exitCode, lines } = await testAgent(service).run(['snapshots']);
    expect(exitCode).toBe(13);
    expect(lines.at(-1)).toMatchObject({ code: 'unauthorized', next: expect.stringContaining('--token') as string });
  });

  it('a missing repository: exit 10, for everything but archive', async () => {
    const service = await startFakeService();
    const agent = testAgent(service);
    for (const argv of [['ls'], ['snapshots'], ['restore', join(temporaryFolder(), 'x')]]) {
      const { exitCode, lines } = await agent.run(argv);
      expect(exitCode).toBe(10);
      expect(lines.at(-1)).toMatchObject({ code: 'repository-not-found' });
    }
    expect(await agent.run(['archive', folderWith()])).toMatchObject({ exitCode: 0 });
  });

  it('a repository without snapshots: exit 10', async () => {
    const service = await startFakeService();
    service.addRepository('plain');
    const agent = testAgent(service);
    expect(await agent.run(['snapshots'])).toMatchObject({ exitCode: 0 });
    const { exitCode, lines } = await agent.run(['ls']);
    expect(exitCode).toBe(10);
    expect(lines.at(-1)).toMatchObject({ code: 'snapshot-not-found' });
  });

  it('an address with /api or a slash at its end is as good', async () => {
    const service = await startFakeService();
    service.addRepository('plain');
    for (const suffix of ['/', '/api', '/api/']) {
      const argv = ['snapshots', '--url', service.url + suffix];
      expect(await testAgent(service).run(argv, { bare: true })).toMatchObject({ exitCode: 0 });
    }
  });
});

describe('passphrases', () => {
  async function sealed(): Promise<{ service: FakeService; agent: TestAgent; folder: string }> {
    const service = await startFakeService();
    service.passphrase = 'right';
    const agent = testAgent(service);
    const folder = folderWith();
    expect(await agent.run(['archive', folder], { env: { ARIUS_PASSPHRASE: 'right' } })).toMatchObject({ exitCode: 0 });
    service.requests.length = 0;
    return { service, agent, folder };
  }

  it.each([
    ['archive', (folder: string) => ['archive', folder]],
    ['restore', () => ['restore', '/tmp/never-created-by-arius']],
    ['ls', () => ['ls']],
  ])('%s with a wrong one: exit 12, before any upload', async (_, argv) => {
    const { service, agent, folder } = await sealed();
    const { exitCode, lines } = await agent.run(argv(folder), { env: { ARIUS_PASSPHRASE: 'wrong' } });
    expect(exitCode).toBe(12);
    expect(lines.at(-1)).toMatchObject({ code: 'passphrase-wrong' });
    expect(service.requests.map(({ kind }) => kind)).toEqual(['health', 'getRepository']);
  });

  it('none at all: exit 12, and says how to give it', async () => {
    const { agent, folder } = await sealed();
    const { exitCode, lines } = await agent.run(['archive', folder]);
    expect(exitCode).toBe(12);
    expect(lines.at(-1)).toMatchObject({
      code: 'passphrase-needed',
      next: expect.stringContaining('--passphrase-file') as string,
    });
  });

  it('from a file, without the line end that editors add, and before the variable', async () => {
    const { agent } = await sealed();
    const file = join(temporaryFolder(), 'passphrase');
    for (const text of ['right', 'right\n', 'right\r\n']) {
      writeFileSync(file, text);
      const result = await agent.run(['ls', '--passphrase-file', file], { env: { ARIUS_PASSPHRASE: 'wrong' } });
      expect(result).toMatchObject({ exitCode: 0 });
    }
    for (const text of ['', '\n']) {
      writeFileSync(file, text);
      expect(await agent.run(['ls', '--passphrase-file', file])).toMatchObject({ exitCode: 2 });
    }
  });

  it('for a plain repository: refused, because nothing would be encrypted', async () => {
    const service = await startFakeService();
    service.addRepository('plain');
    const result = await testAgent(service).run(['archive', folderWith()], { env: { ARIUS_PASSPHRASE: 'x' } });
    expect(result.exitCode).toBe(12);
    expect(result.lines.at(-1)).toMatchObject({ message: expect.stringContaining('plain') as string });
  });

  it('never shows one, whatever goes wrong', async () => {
    const { agent, folder } = await sealed();
    const env = { ARIUS_PASSPHRASE: 'very-secret-and-wrong' };
    const { stdout, stderr } = await agent.run(['archive', folder, '-v'], { env });
    expect(stdout + stderr).not.toContain('very-secret');
  });
});

describe('the embedded service', () => {
  it('is started when no service is configured, and ended with everything saved before the summary', async () => {
    const service = await startFakeService();
    const { launcher, starts, calls } = launch(service);
    const agent = testAgent(undefined);
    const said: string[] = [];
    const exitCode = await runAgent(['archive', folderWith(), '--local', '/my/state', '--no-progress'], {
      embedded: launcher,
      stdout: {
        write(text) {
          calls.push('stdout');
          said.push(text);
        },
      },
      stderr: { write: () => undefined },
      env: { ARIUS_AGENT_DIR: agent.agentDirectory },
      signal: new AbortController().signal,
    });
    expect(exitCode).toBe(0);
    expect(starts).toMatchObject([{ stateDirectory: '/my/state', passphrases: {}, keepRunning: false }]);
    expect(calls).toEqual(['start', 'stop', 'stdout']);
    expect(said.join('')).toContain('Archived');
  });

  it('that is shared goes on, and archive waits until it has saved', async () => {
    const service = await startFakeService();
    const { launcher, calls } = launch(service, true);
    const agent = testAgent(undefined);
    const options = { embedded: launcher, bare: true };
    expect(await agent.run(['archive', folderWith()], options)).toMatchObject({ exitCode: 0 });
    expect(calls).toEqual(['start', 'saved', 'stop']);
    calls.length = 0;
    expect(await agent.run(['ls'], options)).toMatchObject({ exitCode: 0 });
    expect(calls).toEqual(['start', 'stop']);
  });

  it('is not started with --url, ARIUS_URL or a stored connection; --local means it all the same', async () => {
    const service = await startFakeService();
    service.addRepository('plain');
    const agent = testAgent(undefined);
    const argv = ['snapshots'];
    const bare = { bare: true };
    expect(await agent.run([...argv, '--url', service.url], bare)).toMatchObject({ exitCode: 0 });
    expect(await agent.run(argv, { ...bare, env: { ARIUS_URL: service.url } })).toMatchObject({ exitCode: 0 });
    const stored = join(agent.agentDirectory, 'connection.json');
    writeFileSync(stored, JSON.stringify({ url: service.url, token: 'test-key' }));
    expect(await agent.run(argv, { ...bare, env: { ARIUS_TOKEN: '' } })).toMatchObject({ exitCode: 0 });
    const { launcher, calls } = launch(service);
    await agent.run([...argv, '--local', '/state'], { ...bare, embedded: launcher });
    expect(calls).toEqual(['start', 'stop']);
    writeFileSync(stored, 'nonsense');
    expect(await agent.run(argv, bare)).toMatchObject({ exitCode: 2 });
  });

  it('gets the passphrase of the repository, and creates a sealed one', async () => {
    const service = await startFakeService();
    const { launcher, starts } = launch(service);
    const env = { ARIUS_PASSPHRASE: 'secret' };
    const result = await testAgent(undefined).run(['archive', folderWith()], { embedded: launcher, bare: true, env });
    expect(result).toMatchObject({ exitCode: 0 });
    expect(starts).toMatchObject([{ passphrases: { default: 'secret' } }]);
    expect(service.info?.kind).toBe('sealed');
  });

  it('is ended also when the command fails', async () => {
    const service = await startFakeService();
    const { launcher, calls } = launch(service);
    const { exitCode } = await testAgent(undefined).run(['ls'], { embedded: launcher, bare: true });
    expect(exitCode).toBe(10);
    expect(calls).toEqual(['start', 'stop']);
  });

  it('is not started for a folder that cannot be archived', async () => {
    const { exitCode, stderr } = await testAgent(undefined).run(['archive', '/does/not/exist'], {
      bare: true,
      embedded: noLauncher,
    });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error folder-unreadable: The folder \/does\/not\/exist does not exist\. /);
  });
});

describe('serve', () => {
  it('prints one ready line, and ends well when it is told to', async () => {
    const service = await startFakeService();
    const { launcher, starts, calls } = launch(service);
    const stop = new AbortController();
    const agent = testAgent(undefined);
    const running = agent.run(['serve', '--json', '--local', '/state'], {
      bare: true,
      embedded: {
        start: async (options) => {
          setTimeout(() => stop.abort(), 20);
          return launcher.start(options);
        },
      },
      signal: stop.signal,
    });
    const { exitCode, lines } = await running;
    expect(exitCode).toBe(0);
    expect(lines).toEqual([
      {
        messageType: 'ready',
        url: service.url,
        portalUrl: `${service.url}/api/portal`,
        storage: { connectionString: 'UseDevelopmentStorage=true' },
        stateDir: '/state',
      },
    ]);
    expect(starts).toMatchObject([{ keepRunning: true, stateDirectory: '/state' }]);
    expect(calls).toEqual(['start', 'stop']);
  });

  it('tells people where the service is', async () => {
    const service = await startFakeService();
    const { launcher } = launch(service);
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    const { stdout } = await testAgent(undefined).run(['serve'], {
      bare: true,
      embedded: launcher,
      signal: stop.signal,
    });
    expect(stdout).toContain(`The service runs at ${service.url}`);
  });
});

describe('ls and snapshots', () => {
  async function archived(): Promise<{ service: FakeService; agent: TestAgent }> {
    const service = await startFakeService();
    const agent = testAgent(service);
    const folder = folderWith('b.txt', 'hello');
    mkdirSync(join(folder, 'a dir', 'deep'), { recursive: true });
    writeFileSync(join(folder, 'a dir', 'deep', 'c'), '');
    await agent.run(['archive', folder, '--source', 'nas:/photos']);
    return { service, agent };
  }

  it('lists a folder, one entry a line', async () => {
    const { service, agent } = await archived();
    const { lines } = await agent.run(['ls']);
    expect(lines).toMatchObject([
      { messageType: 'file', path: 'a dir', kind: 'directory' },
      { messageType: 'file', path: 'b.txt', kind: 'file', size: 5, modified: expect.stringMatching(/Z$/) as string },
      { messageType: 'summary', command: 'ls', entries: 2 },
    ]);
    const human = await agent.run(['ls', '--url', service.url], { bare: true });
    expect(human.stdout.split('\n')[0]).toMatch(/ a dir\/$/);
    expect(human.stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +5 {2}b\.txt$/m);
  });

  it('lists what is at a path, and with -R what is below it', async () => {
    const { agent } = await archived();
    const paths = async (...argv: string[]): Promise<unknown[]> =>
      (await agent.run(['ls', ...argv])).lines
        .filter(({ messageType }) => messageType === 'file')
        .map(({ path }) => path);
    expect(await paths('a dir')).toEqual(['a dir/deep']);
    expect(await paths('/a dir/deep/')).toEqual(['a dir/deep/c']);
    expect(await paths('b.txt')).toEqual(['b.txt']);
    expect(await paths('-R')).toEqual(['a dir', 'b.txt', 'a dir/deep', 'a dir/deep/c']);
    expect(await agent.run(['ls', 'nothing'])).toMatchObject({ exitCode: 1 });
    expect(await agent.run(['ls', 'b.txt/x'])).toMatchObject({ exitCode: 1 });
  });

  it('SN-16: lists snapshots oldest first, with an index that means the same with --source', async () => {
    const { service, agent } = await archived();
    const folder = folderWith();
    await agent.run(['archive', folder, '--source', 'nas:/two']);
    await agent.run(['archive', folderWith('x', 'y'), '--source', 'nas:/two']);
    const all = (await agent.run(['snapshots'])).summary.snapshots as { index: number; source: string }[];
    expect(all.map(({ index, source }) => [index, source])).toEqual([
      [1, 'nas:/photos'],
      [2, 'nas:/two'],
      [3, 'nas:/two'],
    ]);
    const some = (await agent.run(['snapshots', '--source', 'nas:/two'])).summary.snapshots as { index: number }[];
    expect(some.map(({ index }) => index)).toEqual([2, 3]);
    const human = await agent.run(['snapshots', '--url', service.url], { bare: true });
    expect(human.stdout.trimEnd().split('\n')).toHaveLength(4);
  });
});

describe('snapshots that cannot be read', () => {
  const target = (): string => join(temporaryFolder(), 'target');

  /** Three snapshots of one source, on two pages; those with these numbers cannot be read. */
  async function archived(...unreadable: number[]): Promise<{ agent: TestAgent; url: string; names: string[] }> {
    const service = await startFakeService();
    const agent = testAgent(service);
    for (const content of ['one', 'two', 'three']) {
      await agent.run(['archive', folderWith('a.txt', content), '--source', 'nas:/photos']);
    }
    const names = service.snapshots.map(({ name }) => name);
    expect(names).toHaveLength(3);
    for (const number of unreadable) {
      service.unreadable.add(names[number - 1] as string);
    }
    return { agent, url: service.url, names };
  }

  const warned = ({ lines }: { lines: Record<string, unknown>[] }): unknown[] =>
    lines.filter(({ messageType }) => messageType === 'warning');

  it.each([[['snapshots']], [['snapshots', '--source', 'nas:/photos']], [['ls', '--snapshot', '1']], [['restore']]])(
    '%j names each of them, and goes on',
    async (argv) => {
      const { agent, url, names } = await archived(1, 2);
      const full = (): string[] => (argv[0] === 'restore' ? ['restore', target()] : argv);
      const programs = await agent.run(full());
      expect(programs.exitCode).toBe(0);
      expect(warned(programs)).toEqual(
        names.slice(0, 2).map((name) => ({
          messageType: 'warning',
          message: expect.stringContaining(name) as string,
          snapshot: name,
          reason: 'unreadable',
        })),
      );
      const people = await agent.run([...full(), '--url', url], { bare: true });
      expect(people.exitCode).toBe(0);
      expect(people.stderr.trimEnd().split('\n')).toEqual(
        names.slice(0, 2).map((name) => expect.stringMatching(`^warning: .*${name}.*truncated`) as string),
      );
    },
  );

  it.each([['ls'], ['restore']])('%s does not take an older one for the newest', async (command) => {
    const { agent, names } = await archived(3);
    const folder = target();
    const argv = command === 'restore' ? ['restore', folder] : ['ls'];
    for (const choice of [[], ['--snapshot', 'latest'], ['--source', 'nas:/photos']]) {
      const refused = await agent.run([...argv, ...choice]);
      expect(refused.exitCode).toBe(1);
      expect(warned(refused)).toHaveLength(1);
      expect(refused.lines.at(-1)).toMatchObject({
        messageType: 'error',
        code: 'blob-corrupt',
        message: expect.stringContaining(names[2] as string) as string,
        next: expect.stringContaining(`--snapshot ${names[1]}`) as string,
      });
      expect(existsSync(folder)).toBe(false);
    }
    expect(await agent.run([...argv, '--snapshot', names[1] as string])).toMatchObject({
      exitCode: 0,
      summary: { snapshot: names[1] },
    });
  });
});

describe('how people are spoken to', () => {
  it('results are on stdout; without a terminal nothing live is on stderr', async () => {
    const service = await startFakeService();
    const { stdout, stderr, exitCode } = await testAgent(service).run(['archive', folderWith(), '--url', service.url], {
      bare: true,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^Archived .* to the new repository "default": snapshot \S+\.\n {2}scanned {3}1 file/);
  });

  it('-q says nothing when all is well, and still tells what is not', async () => {
    const service = await startFakeService();
    const agent = testAgent(service);
    const folder = folderWith();
    const argv = ['archive', folder, '-q', '--url', service.url];
    expect(await agent.run(argv, { bare: true })).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    writeFileSync(join(folder, 'bad\\name'), 'x');
    const { exitCode, stdout, stderr } = await agent.run(argv, { bare: true });
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^warning: not archived: bad\\name: /) as string,
      expect.stringMatching(/^error partly-done: 1 file or folder could not be archived/) as string,
    ]);
  });

  it('-v says something about every file', async () => {
    const service = await startFakeService();
    const { lines } = await testAgent(service).run(['archive', folderWith(), '-v']);
    expect(lines.filter(({ messageType }) => messageType === 'file')).toMatchObject([{ path: 'a.txt', action: 'new' }]);
  });

  it('a defect of the program is one line, without a stack trace', async () => {
    const { exitCode, stdout, stderr } = await testAgent(undefined).run(['snapshots'], {
      bare: true,
      env: { ARIUS_DEBUG: undefined as unknown as string },
      embedded: { start: () => Promise.reject(new TypeError('x is not\na function')) },
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^error internal: The program made a mistake: x is not a function\. .*\n$/);
  });
});
