import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startSample, temporaryDirectory } from './harness.ts';

const LIBRARY = JSON.stringify(createRequire(import.meta.url).resolve('@azure/functions'));

describe('the app', () => {
  it('may be CommonJS and ESM, found by a pattern with braces', async () => {
    const appDirectory = await temporaryDirectory();
    await writeFile(join(appDirectory, 'host.json'), '{"version":"2.0"}');
    await writeFile(join(appDirectory, 'package.json'), '{"main":"{one,two}/*.{js,mjs}"}');
    await mkdir(join(appDirectory, 'one'));
    await mkdir(join(appDirectory, 'two'));
    const handler = "authLevel: 'anonymous', handler: () => ({ body: 'here' })";
    await writeFile(join(appDirectory, 'one', 'a.js'), `require(${LIBRARY}).app.http('a', { ${handler} });`);
    const esm = `import library from ${LIBRARY};\nlibrary.app.http('b', { ${handler} });`;
    await writeFile(join(appDirectory, 'two', 'b.mjs'), esm);
    await writeFile(join(appDirectory, 'two', 'c.txt'), 'not loaded');
    const sample = await startSample({ appDirectory });
    for (const name of ['a', 'b']) expect(await (await sample.fetch(`/api/${name}`)).text()).toBe('here');
  });
});
