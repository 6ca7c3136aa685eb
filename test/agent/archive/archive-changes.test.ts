import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { archive } from '../../../src/agent/archive/archive.ts';
import { type ArchiveCounters, newCounters } from '../../../src/agent/archive/archive-context.ts';
import { createExclusions } from '../../../src/agent/files/exclusions.ts';
import { HashCache } from '../../../src/agent/files/hash-cache.ts';
import { FileSystems } from '../../../src/agent/files/network-filesystem.ts';
import { openSession } from '../../../src/agent/session.ts';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import { readTarBundle } from '../../../src/repository/tar-bundle.ts';
import type { FakeService } from '../support/fake-service.ts';
import { noLauncher, startFakeService, temporaryFolder, testAgent } from '../support/run-command.ts';

interface Hooks {
  afterHash?: (path: string) => void;
  beforeCarrierRead?: (path: string) => void;
}

interface Outcome {
  readonly counters: ArchiveCounters;
  readonly reported: string[];
}

/** One run with edits at the worst moments; paths of `afterHash` are absolute. */
async function archiveWith(service: FakeService, folder: string, hooks: Hooks): Promise<Outcome> {
  const abort = new AbortController();
  const session = await openSession({
    repository: 'default',
    service: { url: service.url, functionKey: service.functionKey },
    stateDirectory: '',
    passphraseText: undefined,
    promptPassphrase: undefined,
    create: { tier: undefined, dryRun: false },
    embedded: noLauncher,
    signal: abort.signal,
    onProgress: () => undefined,
  });
  const agentFolder = temporaryFolder();
  const cache = await HashCache.open(join(agentFolder, 'cache'), { repository: 'default', passphraseFingerprint: '' });
  const counters = newCounters();
  const reported: string[] = [];
  try {
    await archive(
      {
        folder,
        source: 'test:/folder',
        exclusions: createExclusions(),
        ownFolders: new Set(),
        hashMode: 'changed',
        dryRun: false,
        tier: undefined,
        spoolDirectory: agentFolder,
      },
      {
        session,
        cache,
        fileSystems: new FileSystems(),
        counters,
        abort,
        onPhase: () => undefined,
        onOperation: () => undefined,
        report: {
          verbose: true,
          skipped: ({ path }) => reported.push(`skipped ${path}`),
          changed: (path) => reported.push(`changed ${path}`),
          failed: (path) => reported.push(`failed ${path}`),
          waiting: (path) => reported.push(`waiting ${path}`),
          pointerWithoutChunk: (path) => reported.push(`pointer ${path}`),
          archived: () => undefined,
        },
        hooks: {
          afterHash: async (path) => hooks.afterHash?.(path),
          beforeCarrierRead: async (path) => hooks.beforeCarrierRead?.(path),
        },
      },
    );
  } finally {
    cache.close();
    await session.close();
  }
  return { counters, reported };
}

async function setup(files: Record<string, string | Buffer>): Promise<{ service: FakeService; folder: string }> {
  const folder = temporaryFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return { service: await startFakeService(), folder };
}

/** Whatever happened: what is stored under a hash has that hash. */
async function expectHashesHold(service: FakeService): Promise<void> {
  const codec = createBodyCodec(undefined);
  const hasher = new Hasher();
  for (const { contentHash, chunkHash, originalSize } of service.entries.values()) {
    const body = service.blobs.get(`chunks/${chunkHash}`)?.body ?? Buffer.alloc(0);
    if (contentHash === chunkHash) {
      expect(hasher.contentHash(await codec.decode(body, originalSize))).toBe(contentHash);
      continue;
    }
    const held: string[] = [];
    for await (const member of readTarBundle(codec.decodeStream(piecesOf(body), 100_000_000))) {
      const hash = hasher.start();
      for await (const bytes of member.body) {
        hash.update(bytes);
      }
      expect(hash.digest()).toBe(member.contentHash);
      held.push(member.contentHash);
    }
    expect(held).toContain(contentHash);
  }
}

async function* piecesOf(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body;
}

async function restored(service: FakeService): Promise<string> {
  const target = join(temporaryFolder(), 'restored');
  expect(await testAgent(service).run(['restore', target])).toMatchObject({ exitCode: 0 });
  return target;
}

const LARGE = 1_100_000;

describe.each([
  ['small', (seed: string) => seed],
  ['large', (seed: string) => Buffer.alloc(LARGE, seed)],
])('a %s file that changes', (_, content) => {
  it('between hashing and upload is hashed again and stored as it is then', async () => {
    const { service, folder } = await setup({ changes: content('a'), stays: content('s') });
    let edits = 0;
    const { counters, reported } = await archiveWith(service, folder, {
      beforeCarrierRead(path) {
        if (path === 'changes' && edits++ === 0) {
          writeFileSync(join(folder, 'changes'), content('b'));
        }
      },
    });
    expect(reported).toEqual(['changed changes']);
    expect(counters).toMatchObject({ filesChangedWhileReading: 1, filesFailed: 0 });
    await expectHashesHold(service);
    expect(execFileSync('diff', ['-r', folder, await restored(service)]).toString()).toBe('');
  });

  it('every time it is looked at is reported once, left out, and does not stop the others', async () => {
    const { service, folder } = await setup({ restless: content('a'), stays: content('s') });
    let edits = 0;
    const { counters, reported } = await archiveWith(service, folder, {
      beforeCarrierRead(path) {
        if (path === 'restless') {
          writeFileSync(join(folder, path), content(String(edits++ % 10)));
        }
      },
    });
    expect(reported).toEqual(['changed restless', 'failed restless']);
    expect(counters).toMatchObject({ filesChangedWhileReading: 1, filesFailed: 1, chunksUploaded: 1 });
    await expectHashesHold(service);
    expect(service.snapshots).toMatchObject([{ fileCount: 1 }]);
  });

  it('while it is hashed is hashed again', async () => {
    const { service, folder } = await setup({ file: content('a') });
    let edits = 0;
    const { counters, reported } = await archiveWith(service, folder, {
      afterHash(path) {
        if (edits++ === 0) {
          appendFileSync(path, 'more');
        }
      },
    });
    expect(reported).toEqual(['changed file']);
    expect(counters).toMatchObject({ filesChangedWhileReading: 1, filesFailed: 0 });
    await expectHashesHold(service);
    expect(execFileSync('diff', ['-r', folder, await restored(service)]).toString()).toBe('');
  });

  it('or vanishes lets another file with its content carry it', async () => {
    const { service, folder } = await setup({
      'a-first': content('x'),
      'b-twin': content('x'),
      'c-twin': content('x'),
    });
    const { counters, reported } = await archiveWith(service, folder, {
      beforeCarrierRead(path) {
        if (path === 'a-first') {
          unlinkSync(join(folder, path));
        }
      },
    });
    expect(reported).toEqual(['failed a-first']);
    expect(counters).toMatchObject({ filesFailed: 1, chunksUploaded: 1 });
    await expectHashesHold(service);
    expect(execFileSync('diff', ['-r', folder, await restored(service)]).toString()).toBe('');
  });

  it('away and whose twins vanish, too, leaves no entry without a chunk in the tree', async () => {
    const { service, folder } = await setup({ 'a-first': content('x'), 'b-twin': content('x'), other: content('o') });
    const { counters } = await archiveWith(service, folder, {
      beforeCarrierRead(path) {
        if (path === 'a-first' || path === 'b-twin') {
          unlinkSync(join(folder, path));
        }
      },
    });
    expect(counters).toMatchObject({ filesFailed: 2, chunksUploaded: 1 });
    expect(service.snapshots).toMatchObject([{ fileCount: 1 }]);
    await expectHashesHold(service);
    await restored(service);
  });
});

describe('a file that crosses the border between small and large', () => {
  it.each([
    ['grows', 'x', Buffer.alloc(LARGE, 'y')],
    ['shrinks', Buffer.alloc(LARGE, 'y'), 'x'],
  ])('and %s between hashing and upload is stored as what it is then', async (_, before, after) => {
    const { service, folder } = await setup({ file: before });
    let edits = 0;
    await archiveWith(service, folder, {
      beforeCarrierRead(path) {
        if (edits++ === 0) {
          writeFileSync(join(folder, path), after);
        }
      },
    });
    await expectHashesHold(service);
    expect([...service.entries.values()]).toMatchObject([{ originalSize: after.length }]);
    expect(execFileSync('diff', ['-r', folder, await restored(service)]).toString()).toBe('');
  });
});
