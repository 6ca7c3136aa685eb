import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOrCreateSecret } from '../../src/local/secret-file.ts';
import {
  type RunningService,
  readServiceFile,
  removeServiceFile,
  writeServiceFile,
} from '../../src/local/service-file.ts';

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'arius-service-'));
  path = join(directory, 'service.json');
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const SERVICE: RunningService = {
  kind: 'serve',
  url: 'http://127.0.0.1:1234',
  functionKey: 'key',
  storageConnectionString: 'AccountKey=secret',
  pid: 42,
};

describe('service.json', () => {
  it('is read as it was written, by this user alone, and leaves nothing beside it', async () => {
    await writeServiceFile(path, SERVICE);
    await writeServiceFile(path, { ...SERVICE, pid: 43 });
    expect(await readServiceFile(path)).toEqual({ ...SERVICE, pid: 43 });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['service.json']);
    await removeServiceFile(path);
    await removeServiceFile(path);
    expect(await readServiceFile(path)).toBeUndefined();
  });

  it.each(['', '{"kind":"serve"', '{"kind":"other"}', 'null'])('says nothing when it holds %j', async (text) => {
    await writeFile(path, text);
    expect(await readServiceFile(path)).toBeUndefined();
  });
});

describe('a secret file', () => {
  it('is made once, random, for this user alone', async () => {
    const secret = await readOrCreateSecret(directory, 'key');
    expect(Buffer.from(secret, 'base64')).toHaveLength(64);
    expect(await readOrCreateSecret(directory, 'key')).toBe(secret);
    expect(await readOrCreateSecret(directory, 'another')).not.toBe(secret);
    expect((await stat(join(directory, 'key'))).mode & 0o777).toBe(0o600);
  });

  it('is made anew when what is there is only the beginning of one', async () => {
    await writeFile(join(directory, 'key'), 'abcd');
    expect(Buffer.from(await readOrCreateSecret(directory, 'key'), 'base64')).toHaveLength(64);
  });
});
