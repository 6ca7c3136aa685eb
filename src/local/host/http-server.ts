/**
 * The one listener: 127.0.0.1 only, bounded headers, bodies and times. Each request is answered by exactly one
 * handler; what a handler throws becomes a 500 with an empty body. Requests whose Host header is not a local name are
 * refused, so that no web page can reach the host by a name of its own that resolves to 127.0.0.1.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  HOST_HEADER_BYTES_MAX,
  HOST_HEADERS_TIMEOUT_MS,
  HOST_KEEP_ALIVE_MS,
  HOST_REQUEST_TIMEOUT_MS,
} from '../../limits.ts';
import type { HostLog } from './log.ts';

const LOCAL_NAMES = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

const TRANSPORT_HEADERS = /^(content-length|transfer-encoding|connection|keep-alive|upgrade|trailer)$/i;

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

export type HttpHandler = (request: HttpRequest) => Promise<HttpAnswer> | HttpAnswer;

export class HttpServer {
  readonly #server: Server;
  readonly #log: HostLog;
  readonly #bodyBytesMax: number;
  #handler: HttpHandler = () => ({ status: 503 });

  constructor(log: HostLog, bodyBytesMax: number) {
    this.#log = log;
    this.#bodyBytesMax = bodyBytesMax;
    this.#server = createServer({ maxHeaderSize: HOST_HEADER_BYTES_MAX }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        this.#log.error('A response could not be sent', error);
        response.destroy();
      });
    });
    this.#server.headersTimeout = HOST_HEADERS_TIMEOUT_MS;
    this.#server.requestTimeout = HOST_REQUEST_TIMEOUT_MS;
    this.#server.keepAliveTimeout = HOST_KEEP_ALIVE_MS;
  }

  /** Port 0 picks a free one. Until a handler is set, everything is answered 503. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  handleWith(handler: HttpHandler): void {
    this.#handler = handler;
  }

  /** Takes no new connection; requests that run may finish. */
  close(): void {
    this.#handler = (): HttpAnswer => ({ status: 503, headers: { Connection: 'close' } });
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: HttpAnswer;
    try {
      answer = await this.#handle(incoming);
    } catch (error) {
      this.#log.error(`${incoming.method ?? ''} failed in the host`, error);
      answer = { status: 500 };
    }
    if (!response.destroyed) this.#send(incoming, response, answer);
  }

  #send(incoming: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : (answer.body ?? new Uint8Array());
    const hasBody = answer.status !== 204 && answer.status !== 304;
    // How the answer travels is decided here; an app that says something else about it would break the connection.
    const given = Object.entries(answer.headers ?? {}).filter(([name]) => !TRANSPORT_HEADERS.test(name));
    response.writeHead(answer.status, {
      ...Object.fromEntries(given),
      ...(hasBody ? { 'Content-Length': String(body.byteLength) } : {}),
      ...(incoming.complete ? {} : { Connection: 'close' }),
    });
    response.end(hasBody && incoming.method !== 'HEAD' ? body : undefined);
  }

  async #handle(incoming: IncomingMessage): Promise<HttpAnswer> {
    const host = incoming.headers.host ?? '127.0.0.1';
    if (!LOCAL_NAMES.test(host)) return { status: 421 };
    let url: URL;
    try {
      url = new URL(incoming.url ?? '/', `http://${host}`);
    } catch {
      return { status: 400 };
    }
    const body = await this.#readBody(incoming);
    if (body === undefined) return { status: 413 };
    return await this.#handler({ method: incoming.method ?? 'GET', url, headers: joinHeaders(incoming), body });
  }

  async #readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    let bytes = 0;
    if (Number(incoming.headers['content-length'] ?? 0) > this.#bodyBytesMax) return undefined;
    for await (const part of incoming as AsyncIterable<Buffer>) {
      bytes += part.byteLength;
      if (bytes > this.#bodyBytesMax) return undefined;
      parts.push(part);
    }
    return Buffer.concat(parts, bytes);
  }
}

function joinHeaders(incoming: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return headers;
}
