/**
 * The HTTP API of the durable extension, below its base path: what `DurableClient` calls and the management URLs of
 * instances point to. Entities and rewind are refused with a reason.
 */

import { INSTANCES_PER_PAGE_MAX } from '../../../limits.ts';
import type { HttpAnswer, HttpRequest } from '../http-server.ts';
import { type ManagementUrls, managementUrls } from './client-binding.ts';
import { type Engine, stamp } from './engine.ts';
import { EventType, type HistoryEvent } from './history.ts';
import { type InstanceRecord, isFinished } from './hub-state.ts';
import { queryInstances } from './instance-query.ts';
import { instanceStatus } from './instance-status.ts';

/** Characters an id may not hold: they have a meaning in the URLs and table keys of the real host. */
const FORBIDDEN_IN_ID = /^@|[/\\#?\p{Cc}]/u;
const INSTANCE_ID_LENGTH_MAX = 256;
/** A waiting start answers after this long at the latest: the time Azure's front end gives a request. */
const WAIT_MS_MAX = 230_000;
const WAIT_POLL_MS_MIN = 5;
const NOT_HERE = 'not supported by the local host';

export interface ClientApiOptions {
  readonly engine: Engine;
  readonly hubName: string;
  readonly key: string;
}

/** `path` are the decoded segments after the base. */
export async function handleClientApi(
  request: HttpRequest,
  path: readonly string[],
  options: ClientApiOptions,
): Promise<HttpAnswer> {
  const [resource, first, second, third] = path;
  const { method } = request;
  if (resource === 'orchestrators' && method === 'POST' && first !== undefined && path.length <= 3) {
    return await startInstance(request, first, second || undefined, options);
  }
  if (resource === 'entities') return message(501, `Durable entities are ${NOT_HERE}.`);
  if (resource !== 'instances') return { status: 404 };
  if (!first) {
    if (method === 'GET') return listInstances(request, options);
    return method === 'DELETE' ? await purgeInstances(request, options) : { status: 404 };
  }
  const record = options.engine.state.instances.get(first);
  // Plain text: the client makes the body its error message.
  if (method === 'POST' && second === 'rewind') return { status: 501, body: `Rewind is ${NOT_HERE}.` };
  if (second === undefined) {
    if (record === undefined) return { status: 404 };
    if (method === 'GET') return getInstance(request, record, options);
    return method === 'DELETE' ? await purgeOne(first, options) : { status: 404 };
  }
  if (method !== 'POST') return { status: 404 };
  if (second === 'restart') return await restartInstance(request, record, options);
  return await sendToInstance(request, record, second, third, options);
}

async function startInstance(
  request: HttpRequest,
  name: string,
  instanceId: string | undefined,
  options: ClientApiOptions,
): Promise<HttpAnswer> {
  if (!options.engine.isOrchestrator(name)) return badArguments(`The orchestrator function '${name}' doesn't exist.`);
  if (instanceId !== undefined && (FORBIDDEN_IN_ID.test(instanceId) || instanceId.length > INSTANCE_ID_LENGTH_MAX)) {
    return badArguments(`'${instanceId}' is not a valid instance id.`);
  }
  const input = request.body.length === 0 ? 'null' : request.body.toString('utf8');
  if (parseJson(input) === undefined) return message(400, 'Invalid JSON content');
  const { searchParams } = request.url;
  const result = await options.engine.start(name, instanceId, input, searchParams.get('version') ?? '');
  if (result.kind === 'exists') return alreadyExists(result.status);
  const timeoutSeconds = Number(searchParams.get('timeout') ?? 0);
  if (timeoutSeconds > 0) {
    const intervalSeconds = Number(searchParams.get('pollingInterval') ?? 1);
    return await waitForEnd(request, result.instanceId, timeoutSeconds, intervalSeconds, options);
  }
  return checkStatus(request, result.instanceId, options);
}

async function waitForEnd(
  request: HttpRequest,
  instanceId: string,
  timeoutSeconds: number,
  intervalSeconds: number,
  options: ClientApiOptions,
): Promise<HttpAnswer> {
  const deadline = Date.now() + Math.min(timeoutSeconds * 1000, WAIT_MS_MAX);
  const intervalMs = Math.max(intervalSeconds * 1000, WAIT_POLL_MS_MIN);
  while (Date.now() < deadline) {
    const record = options.engine.state.instances.get(instanceId);
    if (record === undefined) return { status: 404 };
    if (record.row.runtimeStatus === 'Completed') return json(200, JSON.parse(record.row.output ?? 'null'));
    if (isFinished(record.row.runtimeStatus)) return getInstance(request, record, options);
    await new Promise((resolve) => setTimeout(resolve, Math.min(intervalMs, Math.max(deadline - Date.now(), 1))));
  }
  return checkStatus(request, instanceId, options);
}

function getInstance(request: HttpRequest, record: InstanceRecord, options: ClientApiOptions): HttpAnswer {
  const { row } = record;
  const query = request.url.searchParams;
  const body = instanceStatus(record, {
    showInput: query.get('showInput')?.toLowerCase() !== 'false',
    showHistory: query.get('showHistory')?.toLowerCase() === 'true',
    showHistoryOutput: query.get('showHistoryOutput')?.toLowerCase() === 'true',
  });
  if (!isFinished(row.runtimeStatus)) {
    const Location = urlsOf(request, row.instanceId, options).statusQueryGetUri;
    return json(202, body, { Location, 'Retry-After': '5' });
  }
  const asError = query.get('returnInternalServerErrorOnFailure')?.toLowerCase() === 'true';
  return json(row.runtimeStatus === 'Failed' && asError ? 500 : 200, body);
}

function listInstances(request: HttpRequest, options: ClientApiOptions): HttpAnswer {
  const { searchParams } = request.url;
  const found = queryInstances(options.engine.state, searchParams);
  const after = Buffer.from(request.headers['x-ms-continuation-token'] ?? '', 'base64').toString('utf8');
  const top = Math.min(Number(searchParams.get('top') ?? INSTANCES_PER_PAGE_MAX) || 1, INSTANCES_PER_PAGE_MAX);
  const rest = found.filter((record) => record.row.instanceId > after);
  const page = rest.slice(0, top);
  const last = page.at(-1)?.row.instanceId ?? '';
  const showInput = searchParams.get('showInput')?.toLowerCase() === 'true';
  const shown = { showInput, showHistory: false, showHistoryOutput: false };
  return json(
    200,
    page.map((record) => instanceStatus(record, shown)),
    { 'x-ms-continuation-token': rest.length > top ? Buffer.from(last, 'utf8').toString('base64') : '' },
  );
}

async function purgeOne(instanceId: string, options: ClientApiOptions): Promise<HttpAnswer> {
  await options.engine.purge([instanceId]);
  return json(200, { instancesDeleted: 1 });
}

async function purgeInstances(request: HttpRequest, options: ClientApiOptions): Promise<HttpAnswer> {
  if (!request.url.searchParams.has('createdTimeFrom')) return badArguments('createdTimeFrom must be given.');
  const ids = queryInstances(options.engine.state, request.url.searchParams).map((record) => record.row.instanceId);
  if (ids.length === 0) return { status: 404 };
  await options.engine.purge(ids);
  return json(200, { instancesDeleted: ids.length });
}

async function restartInstance(
  request: HttpRequest,
  record: InstanceRecord | undefined,
  options: ClientApiOptions,
): Promise<HttpAnswer> {
  if (record === undefined) return badArguments('There is no such instance.');
  const { name, instanceId, input, version } = record.row;
  const withNewId = request.url.searchParams.get('restartWithNewInstanceId')?.toLowerCase() !== 'false';
  const result = await options.engine.start(name, withNewId ? undefined : instanceId, input ?? 'null', version);
  return result.kind === 'exists' ? alreadyExists(result.status) : checkStatus(request, result.instanceId, options);
}

async function sendToInstance(
  request: HttpRequest,
  record: InstanceRecord | undefined,
  operation: string,
  eventName: string | undefined,
  options: ClientApiOptions,
): Promise<HttpAnswer> {
  if (record === undefined) return { status: 404 };
  const { instanceId, runtimeStatus } = record.row;
  const reason = request.url.searchParams.get('reason') ?? '';
  let event: HistoryEvent | undefined;
  if (operation === 'raiseEvent' && eventName) {
    const body = request.body.toString('utf8');
    if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
      return message(400, 'Only application/json request content is supported');
    }
    if (parseJson(body) === undefined) return message(400, 'Invalid JSON content');
    event = { EventType: EventType.EventRaised, ...stamp(), Name: eventName, Input: body };
  } else if (operation === 'terminate') {
    event = { EventType: EventType.ExecutionTerminated, ...stamp(), Input: reason };
  } else if (operation === 'suspend') {
    if (runtimeStatus === 'Suspended') return failure('The instance is suspended already.');
    event = { EventType: EventType.ExecutionSuspended, ...stamp(), Reason: reason };
  } else if (operation === 'resume') {
    if (runtimeStatus !== 'Suspended' && !isFinished(runtimeStatus)) return failure('The instance is not suspended.');
    event = { EventType: EventType.ExecutionResumed, ...stamp(), Reason: reason };
  }
  if (event === undefined) return { status: 404 };
  if (isFinished(runtimeStatus)) return { status: 410 };
  await options.engine.send(instanceId, event);
  return { status: 202 };
}

function checkStatus(request: HttpRequest, instanceId: string, options: ClientApiOptions): HttpAnswer {
  const urls = urlsOf(request, instanceId, options);
  return json(202, { id: instanceId, ...urls }, { Location: urls.statusQueryGetUri, 'Retry-After': '10' });
}

function urlsOf(request: HttpRequest, instanceId: string, options: ClientApiOptions): ManagementUrls {
  return managementUrls({ origin: request.url.origin, hubName: options.hubName, key: options.key }, instanceId);
}

/** Not 409: the refusal is an exception in the extension, and its general handler makes that a 500. */
function alreadyExists(status: string): HttpAnswer {
  return failure(`An Orchestration instance with the status ${status} already exists.`);
}

function failure(text: string): HttpAnswer {
  return json(500, {
    Message: 'Something went wrong while processing your request',
    ExceptionMessage: text,
    ExceptionType: 'System.InvalidOperationException',
    StackTrace: '',
  });
}

function badArguments(text: string): HttpAnswer {
  return json(400, {
    Message: 'One or more of the arguments submitted is incorrect',
    ExceptionMessage: text,
    ExceptionType: 'System.ArgumentException',
    StackTrace: '',
  });
}

function message(status: number, text: string): HttpAnswer {
  return json(status, { Message: text });
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

/** undefined when it is no JSON; JSON's own null stays null. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
