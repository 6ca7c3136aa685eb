import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startFakeService, temporaryFolder, testAgent } from './support/run-command.ts';

describe('archive', () => {
  it('archives a folder, and a second run changes nothing', async () => {
    const service = await startFakeService();
    const agent = testAgent(service);
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'a.txt'), 'hello');
    writeFileSync(join(folder, 'sub', 'b.txt'), 'hello');
    writeFileSync(join(folder, 'sub', 'large.bin'), Buffer.alloc(1_500_000, 'x'));
    const first = await agent.run(['archive', folder]);
    expect(first).toMatchObject({ exitCode: 0, stderr: '' });
    const second = await agent.run(['archive', folder]);
    const target = join(temporaryFolder(), 'out');
    const r = await agent.run(['restore', target]);
    console.log(r.stdout, r.stderr);
    console.log(execFileSync('diff', ['-r', folder, target]).toString());
    console.log((await agent.run(['restore', target, '--url', service.url], { bare: true })).stdout);
    console.log(await agent.run(['ls', '-R', '--url', service.url], { bare: true }));
    console.log((await agent.run(['ls', '-R'])).stdout);
    console.log(await agent.run(['snapshots', '--url', service.url], { bare: true }));
    console.log((await agent.run(['restore', '--help'], { bare: true })).stdout);
    console.log(await agent.run(['restor'], { bare: true }));
    console.log(await agent.run([], { bare: true }));
  });
});
