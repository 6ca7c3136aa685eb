/**
 * An HTTP proxy that loses messages: the next changing request before it reaches the server, or its response after the
 * server has answered. The client sees its connection cut.
 */

import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface LossyProxy {
  readonly port: number;
  loseNextRequest(): void;
  loseNextResponse(): void;
  lost(): number;
  stop(): Promise<void>;
}

export async function startLossyProxy(target: { readonly host: string; readonly port: number }): Promise<LossyProxy> {
  const agent = new Agent({ keepAlive: true });
  let lose: 'request' | 'response' | undefined;
  let lost = 0;

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const changes = message.method !== 'GET' && message.method !== 'HEAD';
    const body = await buffer(message);
    const loses = changes ? lose : undefined;
    if (loses !== undefined) {
      lose = undefined;
      lost += 1;
    }
    if (loses !== 'request') {
      const answer = await forward(message, body);
      if (loses === undefined) {
        response.writeHead(answer.status, answer.headers).end(answer.body);
        return;
      }
    }
    response.destroy();
  }

  async function forward(
    message: IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; headers: string[]; body: Buffer }> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      httpRequest({ ...target, agent, method: message.method, path: message.url, headers: message.headers }, resolve)
        .once('error', reject)
        .end(body);
    });
    return { status: answer.statusCode ?? 0, headers: answer.rawHeaders, body: await buffer(answer) };
  }

  const server = createServer((message, response) => {
    serve(message, response).catch(() => response.destroy());
  });
  const port = await listen(server);
  return {
    port,
    loseNextRequest: () => {
      lose = 'request';
    },
    loseNextResponse: () => {
      lose = 'response';
    },
    lost: () => lost,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
