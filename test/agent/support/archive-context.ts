/** An archive context against the fake service, for tests of single stages. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { afterEach } from 'vitest';
import { type ArchiveContext, newCounters } from '../../../src/agent/archive/archive-context.ts';
import { Spool } from '../../../src/agent/archive/spool.ts';
import { BlobClient } from '../../../src/agent/transport/blob-client.ts';
import { RepositoryApi } from '../../../src/agent/transport/repository-api.ts';
import { ServiceClient } from '../../../src/agent/transport/service-client.ts';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import { Hasher } from '../../../src/hashing/hasher.ts';
import type { Passphrase } from '../../../src/hashing/passphrase.ts';
import type { FakeService } from './fake-service.ts';
import { temporaryFolder } from './run-command.ts';
import { runDatabase } from './run-database.ts';

export interface TestContext {
  readonly context: ArchiveContext;
  readonly abort: AbortController;
  /** What was reported: `kind path`. */
  readonly reported: string[];
  readonly spoolFolder: string;
}

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) {
    await close();
  }
});

export async function archiveContext(
  service: FakeService,
  options: { passphrase?: Passphrase; overrides?: Partial<ArchiveContext> } = {},
): Promise<TestContext> {
  const abort = new AbortController();
  const { signal } = abort;
  // Without pauses between attempts: what is tested is what is tried, not how long it takes.
  const sleep = async (): Promise<void> => undefined;
  const client = new ServiceClient({ url: service.url, functionKey: service.functionKey, signal, sleep });
  const blobs = new BlobClient({ signal, sleep });
  closing.push(
    () => client.close(),
    () => blobs.close(),
  );
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'spool'));
  const reported: string[] = [];
  const api = new RepositoryApi(client, 'default', signal);
  if (service.info === undefined) {
    service.addRepository(options.passphrase === undefined ? 'plain' : 'sealed');
  }
  const runId = uuidv7();
  await api.startRun({ runId, source: 'test:/folder' });
  const context: ArchiveContext = {
    root: temporaryFolder(),
    runId,
    tier: 'cool',
    api,
    blobs,
    codec: createBodyCodec(options.passphrase),
    hasher: new Hasher(options.passphrase),
    run: await runDatabase(),
    spool: new Spool(join(folder, 'spool')),
    lookup: async (hashes) => (await api.lookup(hashes, { purpose: 'archive', runId })).known,
    counters: newCounters(),
    report: {
      verbose: true,
      skipped: ({ path }) => reported.push(`skipped ${path}`),
      changed: (path) => reported.push(`changed ${path}`),
      failed: (path) => reported.push(`failed ${path}`),
      waiting: (path) => reported.push(`waiting ${path}`),
      pointerWithoutChunk: (path) => reported.push(`pointer ${path}`),
      archived: () => undefined,
    },
    signal,
    ...options.overrides,
  };
  return { context, abort, reported, spoolFolder: join(folder, 'spool') };
}
