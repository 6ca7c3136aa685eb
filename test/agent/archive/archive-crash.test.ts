import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import type { SnapshotInfo } from '../../../src/contract/schemas.ts';
import { parseFileTree } from '../../../src/repository/filetree.ts';
import { expectRestored } from '../support/archived-folder.ts';
import { ConnectionCut, type FakeBlob, type FakeService } from '../support/fake-service.ts';
import { startFakeService, temporaryFolder, testAgent } from '../support/run-command.ts';

/** Small and large files, a duplicate of each, a folder below a folder. */
function sampleFolder(): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'a', 'b'), { recursive: true });
  writeFileSync(join(folder, 'one'), 'one');
  writeFileSync(join(folder, 'a', 'two'), 'two');
  writeFileSync(join(folder, 'a', 'b', 'again'), 'one');
  writeFileSync(join(folder, 'a', 'large'), Buffer.alloc(1_100_000, 'l'));
  writeFileSync(join(folder, 'a', 'b', 'large'), Buffer.alloc(1_100_000, 'l'));
  return folder;
}

/** Invariant 1: every node and every content of the snapshot is there. */
async function expectResolves(service: FakeService, snapshot: SnapshotInfo): Promise<void> {
  const codec = createBodyCodec(undefined);
  const nodes = [snapshot.rootHash];
  for (let hash = nodes.pop(); hash !== undefined; hash = nodes.pop()) {
    const { body } = service.blobs.get(`filetrees/${hash}`) as FakeBlob;
    for (const entry of parseFileTree(await codec.decode(body, 1_000_000))) {
      if (entry.kind === 'directory') {
        nodes.push(entry.fileTreeHash);
      } else {
        const chunk = service.entries.get(entry.contentHash)?.chunkHash;
        expect(service.blobs.has(`chunks/${chunk}`)).toBe(true);
      }
    }
  }
}

/** How many requests an undisturbed run makes. */
async function requestsOfOneRun(folder: string): Promise<number> {
  const service = await startFakeService();
  await testAgent(service).run(['archive', folder]);
  return service.requests.length;
}

describe('an interrupted archive', () => {
  it('AR-01, AR-02, AR-03: stopped at any request, run again: the right snapshot, byte-identical', async () => {
    const folder = sampleFolder();
    let stopped = true;
    // How many requests a run makes depends on what is gathered into one: on until a run ends before it is stopped.
    for (let stopAt = 1; stopped; stopAt++) {
      const service = await startFakeService();
      const agent = testAgent(service);
      const stop = new AbortController();
      stopped = false;
      service.before = () => {
        if (service.requests.length === stopAt) {
          stopped = true;
          stop.abort();
          throw new ConnectionCut();
        }
      };
      const interrupted = await agent.run(['archive', folder], { signal: stop.signal });
      if (!stopped) {
        expect(stopAt).toBeGreaterThan(12);
        await service.stop();
        break;
      }
      expect(interrupted).toMatchObject({ exitCode: 130, stderr: '' });
      expect(interrupted.lines.at(-1)).toMatchObject({ messageType: 'error', code: 'interrupted' });
      if (stopAt > 4) {
        expect(readdirSync(join(agent.agentDirectory, 'runs'))).toEqual([]);
      }
      service.before = undefined;
      const puts = service.count('put', 'chunks/');
      expect(await agent.run(['archive', folder])).toMatchObject({ exitCode: 0 });
      for (const snapshot of service.snapshots) {
        await expectResolves(service, snapshot);
      }
      expect(service.snapshots).toHaveLength(1);
      // What was created before is met again at most once; nothing is stored twice.
      expect(service.count('put', 'chunks/') - puts).toBeLessThanOrEqual(2);
      await expectRestored(testAgent(service), folder);
      await service.stop();
    }
  });

  it('AR-10, AR-11: asks to record a chunk only after its upload was answered', async () => {
    const folder = sampleFolder();
    const service = await startFakeService();
    const answered = new Set<string>();
    service.after = ({ kind, name }) => {
      if (kind === 'put') {
        answered.add(name);
      }
    };
    service.intercept = (route, input) => {
      if (route === 'recordEntries') {
        for (const hash of input.contentHashes as string[]) {
          expect(answered.has(`chunks/${hash}`)).toBe(true);
        }
      }
      if (route === 'recordMembers') {
        expect(answered.has(`chunks/${input.hash as string}`)).toBe(true);
      }
      if (route === 'completeRun') {
        expect(service.names('filetrees/').every((name) => answered.has(name))).toBe(true);
      }
      return undefined;
    };
    expect(await testAgent(service).run(['archive', folder])).toMatchObject({ exitCode: 0 });
  });
});

describe('lost requests and lost answers', () => {
  it.each(['before', 'after'] as const)(
    'any one request cut off %s it was carried out: the run goes on and ends well',
    async (when) => {
      const folder = sampleFolder();
      const requests = await requestsOfOneRun(folder);
      for (let cutAt = 1; cutAt <= requests; cutAt++) {
        const service = await startFakeService();
        let seen = 0;
        service[when] = () => {
          if (++seen === cutAt) {
            throw new ConnectionCut();
          }
        };
        expect(await testAgent(service).run(['archive', folder])).toMatchObject({ exitCode: 0 });
        expect(service.snapshots).toHaveLength(1);
        await expectResolves(service, service.snapshots[0] as SnapshotInfo);
        service[when] = undefined;
        await expectRestored(testAgent(service), folder);
        await service.stop();
      }
    },
  );
});
