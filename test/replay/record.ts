/**
 * `npm run record:histories`: runs the built app over the storage emulator, lets the host record what its orchestrators
 * live through, and keeps one execution for each way through them. Histories of earlier versions stay where they are.
 */

import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildWhenNeeded } from '../../scripts/build.mjs';
import { createBodyCodec } from '../../src/codec/body-codec.ts';
import { parseContentHash } from '../../src/hashing/hashes.ts';
import { startAzurite } from '../../src/local/azurite.ts';
import { TableJobQueue } from '../../src/records/table-job-queue.ts';
import { type FileTreeEntry, serializeFileTree } from '../../src/repository/filetree.ts';
import { azureStorage } from '../../src/storage/azure/azure-storage.ts';
import { App, type AppOptions, putBlob, sha256 } from '../functions/support/app.ts';
import { answerTo, type RecordedExecution } from './replay-history.ts';

const REPOSITORY = 'recorded';
const codec = createBodyCodec(undefined);

/** The file of each way that is worth keeping, and the recorded execution that takes it. */
const WAYS: Record<string, (execution: RecordedExecution, text: string) => boolean> = {
  'dispatcher-runs-a-job': ({ name }, text) =>
    name === 'dispatcher' && text.includes('completeRun') && !text.includes('finishCompletion'),
  'dispatcher-finds-none': ({ name }, text) => name === 'dispatcher' && !/completeRun|flushRepository/.test(text),
  'dispatcher-ends-an-abandoned-job': ({ name }, text) => name === 'dispatcher' && text.includes('finishCompletion'),
  'completeRun-publishes': ({ name }, text) => name === 'completeRun' && text.includes('promoteEpoch'),
  'completeRun-fails': ({ name }, text) => name === 'completeRun' && !text.includes('publishSnapshot'),
  'verifyBlock-finds-all': ({ name }, text) => name === 'verifyBlock' && !text.includes('\\"ok\\":false'),
  'verifyBlock-misses-one': ({ name }, text) => name === 'verifyBlock' && text.includes('\\"ok\\":false'),
  'rootGroup-flushes': ({ name, input }) => name === 'rootGroup' && JSON.stringify(input).includes('flushRoot'),
  'rootGroup-settles': ({ name, input }) => name === 'rootGroup' && JSON.stringify(input).includes('settleRoot'),
  'flushRepository-flushes': ({ name }) => name === 'flushRepository',
  'commitChunk-assembles': ({ name }) => name === 'commitChunk',
  'copyBlocks-copies': ({ name, input }) => name === 'copyBlocks' && (input as { to: number }).to === 1,
  'copyBlocks-has-children': ({ name, input }) => name === 'copyBlocks' && (input as { to: number }).to === 20,
};

async function record(directory: string): Promise<void> {
  const azurite = await startAzurite({ directory: undefined });
  const { connectionString } = azurite;
  const settings = { LOCAL_HOST_RECORD_DIRECTORY: directory, TASK_HUB: 'recorded' };
  try {
    await inApp({ connectionString, settings }, async (app) => {
      await app.post('repositories', { name: REPOSITORY, kind: 'plain' });
      await completeRun(app, 'first', true);
      await completeRun(app, 'second', false);
      await assemble(app);
      await flush(app, connectionString);
      await copyBlocks(app);
    });
    const slowly = { ...settings, LOCAL_HOST_DELAY_MESSAGES: '1:300' };
    await inApp({ connectionString, settings: slowly }, abandon);
  } finally {
    await azurite.stop();
  }
}

async function inApp(options: AppOptions, work: (app: App) => Promise<void>): Promise<void> {
  const app = await App.start(options);
  try {
    await work(app);
    // The dispatcher looks once more when its last job has ended.
    await new Promise((resolve) => setTimeout(resolve, 2000));
  } finally {
    await app.host.stop();
  }
}

/** The engine gives up on the orchestration of a job: it is terminated while it works. */
async function abandon(app: App): Promise<void> {
  const done = completeRun(app, 'fourth', true);
  for (;;) {
    const running = await durable(app, 'GET', 'instances/?runtimeStatus=Running&showInput=true');
    const instances = (await running.json()) as { name: string; instanceId: string }[];
    const found = instances.find(({ name }) => name === 'completeRun');
    if (found !== undefined) {
      await durable(app, 'POST', `instances/${encodeURIComponent(found.instanceId)}/terminate?reason=recorded`);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await done;
}

async function durable(app: App, method: 'GET' | 'POST', path: string, input?: unknown): Promise<Response> {
  const headers = { 'x-functions-key': app.host.masterKey };
  const body = input === undefined ? {} : { body: JSON.stringify(input) };
  return await fetch(`${app.host.url}/runtime/webhooks/durabletask/${path}`, { method, headers, ...body });
}

/** A tar with members; without its file tree in storage the verification has something to miss. */
async function completeRun(app: App, name: string, isWhole: boolean): Promise<void> {
  const { runId, hashes } = await recordMembers(app, name);
  const node = serializeFileTree(
    hashes.map(
      (hash, index): FileTreeEntry => ({
        kind: 'file',
        name: `${index}`.padStart(3, '0'),
        contentHash: parseContentHash(hash),
        createdTicks: 0n,
        modifiedTicks: 0n,
      }),
    ),
  );
  const rootHash = sha256(node);
  if (isWhole) await app.put(REPOSITORY, `filetrees/${rootHash}`, await codec.encode(node));
  const facts = { rootHash, fileCount: hashes.length, originalSize: hashes.length };
  const { body } = await app.post(`repositories/${REPOSITORY}/runs/${runId}/complete`, facts);
  await app.ended(REPOSITORY, body.operationId);
}

async function recordMembers(app: App, name: string): Promise<{ runId: string; hashes: string[] }> {
  const runId = randomUUID();
  await app.post(`repositories/${REPOSITORY}/runs`, { runId, source: `nas:/${name}` });
  const content = Buffer.from(`tar ${name}`);
  const tar = await codec.encode(content);
  await app.put(REPOSITORY, `chunks/${sha256(content)}`, tar, { arius_type: 'tar', chunk_size: String(tar.length) });
  const hashes = Array.from({ length: 24 }, (_, index) => sha256(Buffer.from(`${name} ${index}`)));
  const members = hashes.map((contentHash) => ({ contentHash, originalSize: 1 }));
  await app.post(`repositories/${REPOSITORY}/tars/${sha256(content)}/members`, { runId, members });
  return { runId, hashes };
}

async function assemble(app: App): Promise<void> {
  const runId = randomUUID();
  await app.post(`repositories/${REPOSITORY}/runs`, { runId, source: 'nas:/large' });
  const content = Buffer.alloc(100_000, 'large');
  const contentHash = sha256(content);
  const granted = await app.post(`repositories/${REPOSITORY}/staging-grants`, { contentHash, runId });
  const chunk = await codec.encode(content);
  await putBlob(granted.body.url, chunk, {});
  const { stagingName } = granted.body;
  const facts = { runId, stagingName, originalSize: content.length, chunkSize: chunk.length };
  const { body } = await app.post(`repositories/${REPOSITORY}/chunks/${contentHash}/commit`, facts);
  await app.ended(REPOSITORY, body.operationId);
}

/** As housekeeping would after a day. */
async function flush(app: App, connectionString: string): Promise<void> {
  await recordMembers(app, 'third');
  const jobs = new TableJobQueue(azureStorage({ connectionString }).table('jobs'));
  const job = { repository: REPOSITORY, operationId: 'flush-1', kind: 'flush', facts: { rows: 24 } } as const;
  await jobs.add({ ...job, now: new Date() });
  const headers = { 'x-functions-key': app.host.masterKey };
  await fetch(`${app.host.url}/admin/functions/wake-on-timer`, { method: 'POST', headers });
  await app.ended(REPOSITORY, job.operationId);
}

/** As for a chunk of 20 blocks, which would be more than a gigabyte; of a job that is not there, so each block fails. */
async function copyBlocks(app: App): Promise<void> {
  const input = { job: { repository: REPOSITORY, operationId: 'none', attempt: 1 }, from: 0, to: 20 };
  await durable(app, 'POST', 'orchestrators/copyBlocks?timeout=30&pollingInterval=0.1', input);
}

async function keep(directory: string): Promise<void> {
  const executions = readdirSync(directory)
    .sort()
    .map((file) => JSON.parse(readFileSync(join(directory, file), 'utf8')) as RecordedExecution);
  for (const [way, takes] of Object.entries(WAYS)) {
    const execution = executions.find((each) => takes(each, JSON.stringify(each)));
    if (execution === undefined) throw new Error(`No execution was recorded for ${way}.`);
    const { actions, outcome } = await answerTo(execution);
    const folder = fileURLToPath(new URL(`./histories/${execution.version}/`, import.meta.url));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${way}.json`), `${JSON.stringify({ ...execution, actions, outcome }, undefined, 1)}\n`);
    console.log(`${way}: ${execution.history.length} events, ${actions.length} actions`);
  }
}

buildWhenNeeded(fileURLToPath(new URL('../../', import.meta.url)));
const directory = mkdtempSync(join(tmpdir(), 'arius-histories-'));
try {
  await record(directory);
  await keep(directory);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
