/** HTTP functions: what a route, a key, a body and an answer can be. */

import { app, type HttpRequest, type HttpResponseInit, type InvocationContext } from '@azure/functions';
import { note, notesWith } from '../support/notes.ts';

app.http('hello', { methods: ['GET'], authLevel: 'anonymous', handler: () => ({ body: 'hello' }) });

app.http('httpEcho', {
  methods: ['POST', 'PUT'],
  authLevel: 'function',
  route: 'echo/{kind}/{id:int}',
  handler: async (request: HttpRequest): Promise<HttpResponseInit> => ({
    status: 201,
    headers: { 'X-Kind': request.params.kind ?? '' },
    cookies: [{ name: 'seen', value: 'a b', path: '/', httpOnly: true, sameSite: 'Strict' }],
    jsonBody: {
      method: request.method,
      url: request.url,
      params: request.params,
      query: Object.fromEntries(request.query),
      custom: request.headers.get('x-custom'),
      text: await request.text(),
    },
  }),
});

app.http('literal', {
  methods: ['GET'],
  authLevel: 'anonymous',
  route: 'items/special',
  handler: () => ({ jsonBody: { route: 'literal' } }),
});
app.http('number', {
  methods: ['GET'],
  authLevel: 'anonymous',
  route: 'items/{id:int:min(10)}',
  handler: (request) => ({ jsonBody: { route: 'number', ...request.params } }),
});
app.http('plain', {
  methods: ['GET'],
  authLevel: 'anonymous',
  route: 'items/{name}/{part?}',
  handler: (request) => ({ jsonBody: { route: 'plain', ...request.params } }),
});
app.http('rest', {
  methods: ['GET'],
  authLevel: 'anonymous',
  route: 'items/{*rest}',
  handler: (request) => ({ jsonBody: { route: 'rest', ...request.params } }),
});
app.http('bytes', {
  methods: ['POST'],
  authLevel: 'anonymous',
  handler: async (request) => ({
    headers: { 'content-length': '7', 'transfer-encoding': 'chunked', 'content-type': 'application/octet-stream' },
    body: new Uint8Array(await request.arrayBuffer()),
  }),
});
app.http('adminOnly', { methods: ['GET'], authLevel: 'admin', route: 'secret-room', handler: () => ({ body: 'in' }) });
app.http('nothing', { methods: ['GET'], authLevel: 'anonymous', handler: () => undefined as never });
app.http('broken', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: () => {
    throw new Error(`broken with ${process.env.SAMPLE_SECRET} and sig=abcdefgh`);
  },
});
app.http('slow', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: async (request) => {
    note('slow begins');
    await new Promise((resolve) => setTimeout(resolve, Number(request.query.get('ms') ?? 0)));
    return { body: 'done' };
  },
});
app.http('notes', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: (request) => ({ jsonBody: notesWith(request.query.get('prefix') ?? '') }),
});
app.http('environment', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: () => ({ jsonBody: process.env }),
});
app.http('print', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: () => {
    console.log(`printed ${process.env.SAMPLE_SECRET} here`);
    return { body: 'ok' };
  },
});
app.http('crash', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: () => {
    setTimeout(() => {
      throw new Error('nobody catches this');
    }, 10);
    return { body: 'soon' };
  },
});
app.http('hooked', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: (_: HttpRequest, context: InvocationContext) => ({ body: String(context.extraInputs.get('marked')) }),
});
app.hook.preInvocation((context) => {
  if (context.invocationContext.functionName === 'hooked')
    context.invocationContext.extraInputs.set('marked', 'by a hook');
});
