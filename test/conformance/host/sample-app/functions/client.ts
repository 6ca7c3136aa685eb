/** HTTP functions that use the real durable client, one per call of it, so that tests can drive it. */

import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import * as df from 'durable-functions';

type Call = (client: df.DurableClient, request: HttpRequest, body: Record<string, unknown>) => Promise<unknown>;

const calls: Record<string, Call> = {
  start: (client, request, body) => client.startNew(request.params.id ?? '', body),
  status: (client, request, body) => client.getStatus(request.params.id ?? '', body),
  statusAll: (client) => client.getStatusAll(),
  statusBy: (client, _, body) =>
    client.getStatusBy({
      runtimeStatus: body.runtimeStatus as df.OrchestrationRuntimeStatus[],
      ...(body.createdTimeFrom === undefined ? {} : { createdTimeFrom: new Date(String(body.createdTimeFrom)) }),
    }),
  raise: (client, request, body) => client.raiseEvent(request.params.id ?? '', String(body.name), body.data),
  terminate: (client, request, body) => client.terminate(request.params.id ?? '', String(body.reason)),
  suspend: (client, request, body) => client.suspend(request.params.id ?? '', String(body.reason)),
  resume: (client, request, body) => client.resume(request.params.id ?? '', String(body.reason)),
  rewind: (client, request, body) => client.rewind(request.params.id ?? '', String(body.reason)),
  purge: (client, request) => client.purgeInstanceHistory(request.params.id ?? ''),
  purgeBy: (client, _, body) =>
    client.purgeInstanceHistoryBy({
      createdTimeFrom: new Date(String(body.createdTimeFrom)),
      runtimeStatus: body.runtimeStatus as df.OrchestrationRuntimeStatus[],
    }),
  readEntity: (client, request) => client.readEntityState(new df.EntityId('counter', request.params.id ?? '')),
  payload: async (client, request) => client.createHttpManagementPayload(request.params.id ?? ''),
};

df.app.client.http('client', {
  route: 'client/{call}/{id?}',
  methods: ['POST'],
  authLevel: 'function',
  handler: async (request: HttpRequest, client: df.DurableClient): Promise<HttpResponseInit> => {
    const text = await request.text();
    const call = calls[request.params.call ?? ''];
    if (call === undefined) return { status: 404 };
    try {
      const result = await call(client, request, text === '' ? {} : JSON.parse(text));
      return { jsonBody: { result } };
    } catch (error) {
      return { status: 409, jsonBody: { error: (error as Error).message } };
    }
  },
});

df.app.client.http('startAndCheck', {
  route: 'start-and-check/{name}',
  methods: ['POST'],
  authLevel: 'function',
  handler: async (request: HttpRequest, client: df.DurableClient) => {
    const id = await client.startNew(request.params.name ?? '', { input: await request.json() });
    return client.createCheckStatusResponse(request, id);
  },
});
