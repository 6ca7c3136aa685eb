/**
 * From an HTTP request to a function and back: route, key, invocation, answer. A handler that returns nothing answers
 * 204, one that throws 500, both without a body; an unknown path or method is 404, a wrong key 401.
 */

import type { HttpAnswer, HttpRequest } from './http-server.ts';
import type { Invoker } from './invocation.ts';
import type { KeyStore } from './keys.ts';
import type { HostLog } from './log.ts';
import { responseCookie } from './response-cookie.ts';
import type { AuthLevel, RouteTable } from './route-table.ts';
import type { RpcData, RpcHttp } from './rpc-types.ts';

export interface HttpTriggerParts {
  readonly routes: RouteTable;
  readonly keys: KeyStore;
  readonly invoker: Invoker;
  readonly log: HostLog;
}

export async function handleFunctionRequest(request: HttpRequest, parts: HttpTriggerParts): Promise<HttpAnswer> {
  const match = parts.routes.find(request.method, request.url.pathname);
  if (match === undefined) return { status: 404 };
  if (!isAllowed(match.authLevel, keyOf(request), match.target.name, parts.keys)) return { status: 401 };
  try {
    const response = await parts.invoker.invoke(match.target, { trigger: requestData(request, match.params) });
    return answerOf(response.returnValue ?? undefined);
  } catch (error) {
    parts.log.error('The function failed', error, { function: match.target.name });
    return { status: 500 };
  }
}

export function keyOf(request: HttpRequest): string | undefined {
  return request.headers['x-functions-key'] ?? request.url.searchParams.get('code') ?? undefined;
}

function isAllowed(level: AuthLevel, key: string | undefined, functionName: string, keys: KeyStore): boolean {
  if (level === 'anonymous') return true;
  return level === 'admin' ? keys.allowsAdmin(key) : keys.allowsFunction(key, functionName);
}

function requestData(request: HttpRequest, params: Record<string, string>): RpcData {
  const query: Record<string, string> = {};
  for (const name of new Set(request.url.searchParams.keys())) {
    query[name] = request.url.searchParams.getAll(name).join(',');
  }
  return {
    http: {
      method: request.method,
      url: request.url.href,
      nullableHeaders: nullable(request.headers),
      nullableQuery: nullable(query),
      nullableParams: nullable(params),
      body: { bytes: request.body },
    },
  };
}

function nullable(map: Readonly<Record<string, string>>): Record<string, { value: string }> {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, { value }]));
}

function answerOf(data: RpcData | undefined): HttpAnswer {
  if (data?.http === undefined) return { status: 204 };
  const { statusCode, headers = {}, cookies = [], body }: RpcHttp = data.http;
  return {
    status: Number(statusCode ?? 200),
    headers: {
      ...headers,
      ...(cookies.length === 0 ? {} : { 'Set-Cookie': cookies.map(responseCookie) }),
    },
    body: body?.bytes ?? body?.string ?? '',
  };
}
