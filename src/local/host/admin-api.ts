/** The host's own endpoints: liveness for anyone, status and firing a timer for the holder of the master key. */

import type { HttpAnswer, HttpRequest } from './http-server.ts';
import { keyOf } from './http-trigger.ts';
import type { KeyStore } from './keys.ts';
import type { TimerTriggers } from './timers.ts';

export interface AdminParts {
  readonly keys: KeyStore;
  readonly timers: TimerTriggers;
}

/** `path` are the decoded segments after `/admin`. */
export async function handleAdminRequest(
  request: HttpRequest,
  path: readonly string[],
  parts: AdminParts,
): Promise<HttpAnswer> {
  const [area, name] = path;
  if (area === 'host' && name === 'ping') return { status: 200 };
  if (!parts.keys.allowsAdmin(keyOf(request))) return { status: 401 };
  if (area === 'host' && name === 'status' && request.method === 'GET') {
    const body = {
      id: 'local-host',
      state: 'Running',
      version: '4.1040.0',
      processUptime: Math.round(process.uptime() * 1000),
    };
    return { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8' }, body: JSON.stringify(body) };
  }
  if (area === 'functions' && name !== undefined && request.method === 'POST') {
    // With ?wait=true the answer comes when the handler has ended; the real host always answers at once.
    const run = parts.timers.fireNow(name);
    if (run === undefined) return { status: 404 };
    if (request.url.searchParams.get('wait') === 'true') await run;
    return { status: 202 };
  }
  return { status: 404 };
}
