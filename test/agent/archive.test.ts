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
    console.log(first.stdout);
    const second = await agent.run(['archive', folder]);
    console.log(second.stdout);
    console.log((await agent.run(['archive', folder,'--url',service.url], { bare: true })).stdout);
    console.log(service.requests.slice(-12));
  });
});
