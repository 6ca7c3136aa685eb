import { azureStorage } from '../../../src/storage/azure/azure-storage.ts';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.ts';
import type { ConformanceSubject, PlainRequest } from './subject.ts';

/** The Azure adapter against whatever the connection string names, and again behind proxies that lose messages. */
export async function azureSubject(connectionString: string): Promise<ConformanceSubject> {
  const proxies: LossyProxy[] = [];
  let lossyConnectionString = connectionString;
  for (const [, endpoint = ''] of connectionString.matchAll(/(?:Blob|Queue|Table)Endpoint=(http:\/\/[^/;]+)/g)) {
    const { hostname, port } = new URL(endpoint);
    const proxy = await startLossyProxy({ host: hostname, port: Number(port) });
    proxies.push(proxy);
    lossyConnectionString = lossyConnectionString.replace(endpoint, `http://127.0.0.1:${proxy.port}`);
  }
  return {
    storage: azureStorage({ connectionString }),
    lossy: azureStorage({ connectionString: lossyConnectionString }),
    loss: {
      loseNextRequest: () => {
        for (const proxy of proxies) {
          proxy.loseNextRequest();
        }
      },
      loseNextResponse: () => {
        for (const proxy of proxies) {
          proxy.loseNextResponse();
        }
      },
      lost: () => proxies.reduce((sum, proxy) => sum + proxy.lost(), 0),
    },
    plainRequest,
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
}

async function plainRequest(url: string, request: PlainRequest): Promise<number> {
  const response = await fetch(url, {
    method: request.method,
    headers: { 'x-ms-version': '2025-11-05', ...request.headers },
    ...(request.body === undefined ? {} : { body: Buffer.from(request.body) }),
  });
  await response.arrayBuffer();
  return response.status;
}
