/**
 * The HTTP contract, kept in memory: a service and its storage for tests of the agent alone. It checks every request
 * with the contract's own schemas, and refuses what the real storage refuses.
 */

import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBodyCodec } from '../../../src/codec/body-codec.ts';
import { ROUTES, type RouteName } from '../../../src/contract/routes.ts';
import type {
  CompleteRunRequest,
  EntryResult,
  OperationInfo,
  RepositoryInfo,
  ShardEntryDto,
  SnapshotInfo,
} from '../../../src/contract/schemas.ts';
import { AriusError } from '../../../src/errors.ts';
import { Passphrase } from '../../../src/hashing/passphrase.ts';

export interface FakeBlob {
  body: Buffer;
  metadata: Record<string, string>;
  tier: string;
  contentType: string;
}

interface FakeRun {
  runId: string;
  source: string;
  tier: 'hot' | 'cool' | 'cold';
  operationId: string | null;
  snapshot: string | null;
  state: 'started' | 'completed' | 'failed';
}

export interface RequestRecord {
  /** A route's name, or `put` / `get` / `block` / `blocklist`. */
  readonly kind: string;
  readonly name: string;
}

interface Answer {
  status: number;
  body: unknown;
}

/** Thrown by a hook: the connection is cut. `before`: the request was lost. `after`: it was carried out. */
export class ConnectionCut extends Error {}

export class FakeService {
  readonly blobs = new Map<string, FakeBlob>();
  readonly entries = new Map<string, ShardEntryDto>();
  readonly snapshots: SnapshotInfo[] = [];
  /** Names of those among `snapshots` whose manifest is damaged. */
  readonly unreadable = new Set<string>();
  readonly runs = new Map<string, FakeRun>();
  readonly requests: RequestRecord[] = [];
  readonly staged = new Map<string, Map<string, Buffer>>();
  readonly operations = new Map<string, OperationInfo>();
  info: RepositoryInfo | undefined;
  functionKey = 'test-key';
  /** Passphrase the service itself holds, for sealed repositories it creates. */
  passphrase: string | undefined;
  /** Names of chunks that look like another writer's unfinished upload. */
  readonly debris = new Set<string>();
  /** Chunks whose GET answers BlobArchived. */
  readonly archived = new Set<string>();
  /** Polls before an operation ends. */
  operationPolls = 0;
  before: ((request: RequestRecord) => Promise<void> | void) | undefined;
  after: ((request: RequestRecord) => Promise<void> | void) | undefined;
  /** Overrides the answer of a route. */
  intercept: ((route: RouteName, input: Record<string, unknown>) => Answer | undefined) | undefined;
  #server: Server | undefined;
  url = '';
  #clock = Date.parse('2026-03-22T15:00:00.000Z');

  async start(): Promise<this> {
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => {
        if (error instanceof ConnectionCut) {
          request.socket.destroy();
        } else {
          respond(
            response,
            500,
            problemOf(new AriusError('internal', String((error as Error).stack), 'Fix the fake.')),
          );
        }
      });
    });
    await new Promise<void>((resolve) => this.#server?.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server !== undefined) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  count(kind: string, namePrefix = ''): number {
    return this.requests.filter((r) => r.kind === kind && r.name.startsWith(namePrefix)).length;
  }

  names(prefix: string): string[] {
    return [...this.blobs.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  addRepository(kind: 'plain' | 'sealed', proof: string | null = null, name = 'default'): void {
    this.info = {
      name,
      kind,
      tier: 'cool',
      createdAt: new Date(this.#clock).toISOString(),
      epoch: null,
      passphraseProof: proof,
    };
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    if (url.pathname.startsWith('/blob/')) {
      await this.#blob(request, response, url);
      return;
    }
    for (const [name, route] of Object.entries(ROUTES)) {
      const params = match(route.path, url.pathname.replace(/^\/api\//, ''));
      if (params !== undefined && route.method === request.method) {
        await this.#route(name as RouteName, params, request, response, url);
        return;
      }
    }
    respond(response, 404, { nothing: 'here' });
  }

  async #route(
    name: RouteName,
    params: Record<string, string>,
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
  ): Promise<void> {
    const record: RequestRecord = { kind: name, name: Object.values(params).join('/') };
    const text = (await readAll(request)).toString();
    if (request.headers['x-functions-key'] !== this.functionKey) {
      respond(response, 401, undefined);
      return;
    }
    this.requests.push(record);
    await this.before?.(record);
    const route = ROUTES[name];
    let answer: Answer;
    try {
      const body = 'request' in route ? (route.request.parse(JSON.parse(text)) as Record<string, unknown>) : {};
      const input = { ...params, ...Object.fromEntries(url.searchParams), ...body };
      answer = this.intercept?.(name, input) ?? (await this.#answer(name, input));
    } catch (error) {
      if (!(error instanceof AriusError)) {
        throw error;
      }
      answer = { status: error.status, body: problemOf(error) };
    }
    await this.after?.(record);
    respond(response, answer.status, answer.status < 300 ? route.response.parse(answer.body) : answer.body);
  }

  async #answer(name: RouteName, input: Record<string, unknown>): Promise<Answer> {
    const ok = (body: unknown, status = 200): Answer => ({ status, body });
    switch (name) {
      case 'health':
        return ok({ status: 'ok', version: '0.0.0', time: new Date(this.#clock).toISOString() });
      case 'createRepository': {
        const { name: repository, kind, tier } = input as { name: string; kind: 'plain' | 'sealed'; tier?: 'hot' };
        let proof: string | null = null;
        if (kind === 'sealed') {
          if (this.passphrase === undefined) {
            throw new AriusError('passphrase-missing-in-service', 'No passphrase here.', 'Configure it.');
          }
          const sealed = await createBodyCodec(new Passphrase(this.passphrase)).encode(Buffer.from('proof'));
          proof = Buffer.from(sealed).toString('base64');
        }
        this.addRepository(kind, proof, repository);
        this.info = { ...(this.info as RepositoryInfo), tier: tier ?? 'cool' };
        return ok(this.info, 201);
      }
      case 'listRepositories':
        return ok({ repositories: this.info === undefined ? [] : [this.info] });
      default:
        break;
    }
    if (this.info === undefined || this.info.name !== input.repository) {
      throw new AriusError('repository-not-found', `There is no repository ${input.repository}.`, 'Create it.');
    }
    switch (name) {
      case 'getRepository':
        return ok(this.info);
      case 'startRun':
        return ok(this.#startRun(input as { runId: string; source: string; tier?: 'hot' }));
      case 'getRun':
        return ok(this.#run(input.runId as string));
      case 'completeRun':
        return ok(this.#complete(input as unknown as CompleteRunRequest & { runId: string }), 202);
      case 'lookup': {
        const hashes = input.hashes as string[];
        return ok({
          known: hashes.flatMap((hash) => this.entries.get(hash) ?? []),
          missing: hashes.filter((hash) => !this.entries.has(hash)),
        });
      }
      case 'grants': {
        const sp = input.purpose === 'create' ? 'c' : 'r';
        return ok({ grants: (input.names as string[]).map((blob) => this.#grant(blob, sp)) });
      }
      case 'stagingGrant': {
        const hash = input.contentHash as string;
        const entry = this.entries.get(hash);
        return entry === undefined
          ? ok({ outcome: 'granted', stagingName: `staging-${hash}`, ...this.#grant(`staging-${hash}`, 'w') })
          : ok({ outcome: 'exists', entry });
      }
      case 'commitChunk':
        return ok(
          this.#commit(input as { hash: string; stagingName: string; originalSize: number; chunkSize: number }),
          202,
        );
      case 'recordEntries':
        return ok({ results: (input.contentHashes as string[]).map((hash) => this.#record(hash)) });
      case 'recordMembers':
        return ok(
          this.#members(input.hash as string, input.members as { contentHash: string; originalSize: number }[]),
        );
      case 'listSnapshots': {
        // Two a page, so that paging is always exercised.
        const from = Number(input.continuation ?? 0);
        const page = this.snapshots.slice(from, from + 2);
        const damaged = page.filter(({ name }) => this.unreadable.has(name));
        return ok({
          snapshots: page.filter(
            ({ name, source }) => !this.unreadable.has(name) && (input.source === undefined || source === input.source),
          ),
          continuation: from + 2 < this.snapshots.length ? String(from + 2) : null,
          ...(damaged.length === 0
            ? {}
            : { unreadable: damaged.map(({ name }) => ({ name, reason: `snapshots/${name}: it is truncated` })) }),
        });
      }
      case 'getSnapshot': {
        const found = this.snapshots.find((s) => s.name === input.name);
        if (found === undefined) {
          throw new AriusError('snapshot-not-found', 'There is no such snapshot.', 'List them.');
        }
        return ok(found);
      }
      case 'getOperation':
        return ok(this.#poll(input.operationId as string));
      default:
        throw new AriusError('not-found', `${name} is not part of the fake.`, 'Add it.');
    }
  }

  #startRun(input: { runId: string; source: string; tier?: 'hot' | 'cool' | 'cold' }): unknown {
    const run: FakeRun = this.runs.get(input.runId) ?? {
      runId: input.runId,
      source: input.source,
      tier: input.tier ?? this.info?.tier ?? 'cool',
      operationId: null,
      snapshot: null,
      state: 'started',
    };
    this.runs.set(run.runId, run);
    return this.#run(run.runId);
  }

  #run(runId: string): unknown {
    const run = this.runs.get(runId) as FakeRun;
    return {
      ...run,
      repository: this.info?.name,
      startedAt: new Date(this.#clock).toISOString(),
      newestSnapshot: this.snapshots.findLast(({ source }) => source === run.source) ?? null,
    };
  }

  #complete(input: CompleteRunRequest & { runId: string }): OperationInfo {
    const run = this.runs.get(input.runId) as FakeRun;
    const newest = this.snapshots.findLast(({ source }) => source === run.source);
    let published = false;
    let snapshot = newest?.name ?? null;
    if (input.rootHash !== null && input.rootHash !== newest?.rootHash) {
      if (!this.blobs.has(`filetrees/${input.rootHash}`)) {
        throw new AriusError('snapshot-incomplete', 'The root is missing.', 'Archive again.');
      }
      this.#clock += 1000;
      const timestamp = new Date(this.#clock).toISOString();
      snapshot = `${timestamp.slice(0, 13)}${timestamp.slice(14, 16)}${timestamp.slice(17)}`;
      published = true;
      this.snapshots.push({
        name: snapshot,
        timestamp,
        rootHash: input.rootHash,
        fileCount: input.fileCount,
        originalSize: input.originalSize,
        ariusVersion: 'fake',
        source: run.source,
        runId: run.runId,
      });
    }
    run.state = 'completed';
    run.snapshot = snapshot;
    return this.#operation('complete', {
      snapshot,
      snapshotPublished: published,
      entriesRecorded: 0,
      shardsWritten: 2,
      shardsSplit: 0,
      indexBytesWritten: 100,
      storageRequests: { 'blob-write': 3, 'table-read': 2 },
    });
  }

  #commit(input: { hash: string; stagingName: string; originalSize: number; chunkSize: number }): OperationInfo {
    const blob = this.blobs.get(input.stagingName);
    if (blob === undefined || blob.body.byteLength !== input.chunkSize) {
      throw new AriusError('bad-request', 'The staged body is not what was announced.', 'Stage it again.');
    }
    this.blobs.set(`chunks/${input.hash}`, {
      ...blob,
      metadata: {
        arius_type: 'large',
        original_size: String(input.originalSize),
        chunk_size: String(input.chunkSize),
      },
    });
    return this.#operation('commit-chunk', {});
  }

  #operation(kind: 'complete' | 'commit-chunk', result: Record<string, unknown>): OperationInfo {
    const time = new Date(this.#clock).toISOString();
    const operation: OperationInfo & { polls: number } = {
      operationId: randomUUID(),
      repository: this.info?.name ?? '',
      kind,
      state: this.operationPolls === 0 ? 'succeeded' : 'running',
      phase: this.operationPolls === 0 ? 'done' : 'flushing',
      progress: this.operationPolls === 0 ? null : { done: 0, total: 256, unit: 'roots' },
      createdAt: time,
      updatedAt: time,
      result,
      error: null,
      polls: 0,
    };
    this.operations.set(operation.operationId, operation);
    return operation;
  }

  #poll(operationId: string): OperationInfo {
    const operation = this.operations.get(operationId) as OperationInfo & { polls: number };
    operation.polls++;
    if (operation.polls >= this.operationPolls && operation.error === null) {
      operation.state = 'succeeded';
      operation.phase = 'done';
    }
    return operation;
  }

  #record(hash: string): EntryResult {
    const blob = this.blobs.get(`chunks/${hash}`);
    if (this.debris.has(hash)) {
      return { contentHash: hash, outcome: 'debris', retryAt: new Date(this.#clock + 3_600_000).toISOString() };
    }
    if (blob === undefined) {
      return { contentHash: hash, outcome: 'absent' };
    }
    if (blob.metadata.arius_type === 'tar') {
      return { contentHash: hash, outcome: 'conflict', detail: conflictDetail(hash, blob) };
    }
    const entry: ShardEntryDto = {
      contentHash: hash,
      chunkHash: hash,
      originalSize: Number(blob.metadata.original_size),
      chunkSize: Number(blob.metadata.chunk_size),
      tier: 'cool',
    };
    this.entries.set(hash, entry);
    return { contentHash: hash, outcome: 'recorded', entry };
  }

  #members(tarHash: string, members: { contentHash: string; originalSize: number }[]): unknown {
    const tar = this.blobs.get(`chunks/${tarHash}`);
    if (this.debris.has(tarHash)) {
      return { tar: { outcome: 'debris' }, results: [] };
    }
    if (tar === undefined) {
      return { tar: { outcome: 'absent' }, results: [] };
    }
    if (tar.metadata.arius_type !== 'tar') {
      return { tar: { outcome: 'conflict', detail: conflictDetail(tarHash, tar) }, results: [] };
    }
    const results = members.map(({ contentHash, originalSize }): EntryResult => {
      if (this.debris.has(contentHash)) {
        return { contentHash, outcome: 'debris' };
      }
      const present = this.blobs.get(`chunks/${contentHash}`);
      if (present?.metadata.arius_type === 'tar') {
        return { contentHash, outcome: 'conflict', detail: conflictDetail(contentHash, present) };
      }
      const chunkSize = Number(tar.metadata.chunk_size);
      const entry: ShardEntryDto = { contentHash, chunkHash: tarHash, originalSize, chunkSize, tier: 'cool' };
      this.entries.set(contentHash, entry);
      this.blobs.set(`chunks/${contentHash}`, {
        body: Buffer.alloc(0),
        metadata: {
          arius_type: 'thin',
          parent_chunk_hash: tarHash,
          original_size: String(originalSize),
          chunk_size: String(chunkSize),
        },
        tier: 'Cool',
        contentType: 'text/plain; charset=utf-8',
      });
      return { contentHash, outcome: 'recorded', entry };
    });
    return { tar: { outcome: 'committed' }, results };
  }

  #grant(name: string, sp: string): { name: string; url: string; expiresAt: string } {
    const url = `${this.url}/blob/${name}?sp=${sp}&sig=${signature(name, sp)}`;
    return { name, url, expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
  }

  async #blob(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const name = url.pathname.slice('/blob/'.length);
    const comp = url.searchParams.get('comp');
    const kind = request.method === 'GET' ? 'get' : (comp ?? 'put');
    const record: RequestRecord = { kind, name };
    const sp = url.searchParams.get('sp') ?? '';
    const body = await readAll(request);
    this.requests.push(record);
    await this.before?.(record);
    if (url.searchParams.get('sig') !== signature(name, sp)) {
      fail(response, 403, 'AuthenticationFailed');
      return;
    }
    if (request.headers['content-md5'] !== undefined) {
      if (createHash('md5').update(body).digest('base64') !== request.headers['content-md5']) {
        fail(response, 400, 'Md5Mismatch');
        return;
      }
    }
    const outcome = this.#carryOut(request, name, kind, sp, body, url);
    await this.after?.(record);
    if (typeof outcome === 'string') {
      fail(response, ...(outcome.split(' ') as unknown as [number, string]));
    } else if (outcome instanceof Buffer) {
      response.writeHead(200, { 'content-length': outcome.byteLength });
      response.end(outcome);
    } else {
      response.writeHead(201);
      response.end();
    }
  }

  #carryOut(
    request: IncomingMessage,
    name: string,
    kind: string,
    sp: string,
    body: Buffer,
    url: URL,
  ): string | Buffer | undefined {
    if (kind === 'get') {
      if (sp !== 'r') {
        return '403 AuthorizationPermissionMismatch';
      }
      if (this.archived.has(name)) {
        return '409 BlobArchived';
      }
      return this.blobs.get(name)?.body ?? '404 BlobNotFound';
    }
    if (kind === 'block' || kind === 'blocklist') {
      if (sp !== 'w') {
        return '403 AuthorizationPermissionMismatch';
      }
      const blocks = this.staged.get(name) ?? new Map<string, Buffer>();
      this.staged.set(name, blocks);
      if (kind === 'block') {
        blocks.set(url.searchParams.get('blockid') ?? '', body);
        return undefined;
      }
      const ids = [...body.toString().matchAll(/<Latest>([^<]*)<\/Latest>/g)].map((found) => found[1] ?? '');
      const parts = ids.map((id) => blocks.get(id));
      if (parts.includes(undefined)) {
        return '400 InvalidBlockList';
      }
      this.blobs.set(name, { body: Buffer.concat(parts as Buffer[]), metadata: {}, tier: 'Hot', contentType: '' });
      return undefined;
    }
    if (sp !== 'c' || request.headers['if-none-match'] !== '*') {
      return '403 AuthorizationPermissionMismatch';
    }
    if (this.blobs.has(name) || this.debris.has(name.replace('chunks/', ''))) {
      return '403 UnauthorizedBlobOverwrite';
    }
    const metadata = Object.fromEntries(
      Object.entries(request.headers)
        .filter(([key]) => key.startsWith('x-ms-meta-'))
        .map(([key, value]) => [key.slice('x-ms-meta-'.length), String(value)]),
    );
    this.blobs.set(name, {
      body,
      metadata,
      tier: String(request.headers['x-ms-access-tier']),
      contentType: String(request.headers['x-ms-blob-content-type']),
    });
    return undefined;
  }
}

function conflictDetail(hash: string, { metadata }: FakeBlob): string {
  return `chunks/${hash} holds a chunk of type "${metadata.arius_type}".`;
}

function signature(name: string, sp: string): string {
  return createHash('sha256').update(`${name} ${sp}`).digest('hex').slice(0, 16);
}

function match(template: string, path: string): Record<string, string> | undefined {
  const names: string[] = [];
  const pattern = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    names.push(name);
    return '([^/]+)';
  });
  const found = new RegExp(`^${pattern}$`).exec(path);
  return found === null
    ? undefined
    : Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')]));
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

function problemOf(error: AriusError): unknown {
  return error.toProblem();
}

function respond(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': status < 300 ? 'application/json' : 'application/problem+json' });
  response.end(body === undefined ? '' : JSON.stringify(body));
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.writeHead(Number(status), { 'x-ms-error-code': code });
  response.end();
}
