/** Which part of the host answers a request: its own endpoints, the durable API under two paths, or a function. */

import { type AdminParts, handleAdminRequest } from './admin-api.ts';
import { type ClientApiOptions, handleClientApi } from './durable/client-api.ts';
import type { HttpAnswer, HttpHandler, HttpRequest } from './http-server.ts';
import { type HttpTriggerParts, handleFunctionRequest, keyOf } from './http-trigger.ts';
import { matches } from './keys.ts';

export interface DispatcherParts extends AdminParts {
  readonly api: ClientApiOptions;
  /** The part of the client's own path that nobody else knows: the library sends no key there. */
  readonly rpcToken: string;
  readonly functions: HttpTriggerParts;
}

export function dispatcher(parts: DispatcherParts): HttpHandler {
  return async (request: HttpRequest): Promise<HttpAnswer> => {
    const path = decodedPath(request.url.pathname);
    if (path === undefined) return { status: 400 };
    const [area, kind, third] = path;
    if (area === 'admin') return await handleAdminRequest(request, path.slice(1), parts);
    if (area === 'runtime' && kind === 'rpc' && path[3] === 'durabletask') {
      const isOurClient = matches(third, [parts.rpcToken]);
      return isOurClient ? await handleClientApi(request, path.slice(4), parts.api) : { status: 404 };
    }
    if (area === 'runtime' && kind === 'webhooks' && third === 'durabletask') {
      if (!parts.keys.allowsDurable(keyOf(request))) return { status: 401 };
      return await handleClientApi(request, path.slice(3), parts.api);
    }
    if (request.url.pathname === '/') return { status: 204 };
    return await handleFunctionRequest(request, parts.functions);
  };
}

function decodedPath(pathname: string): string[] | undefined {
  try {
    return pathname.replace(/^\/+/, '').split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
