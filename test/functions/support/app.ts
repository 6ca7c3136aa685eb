/** The whole function app, as built, in the local host over Azurite; and an agent's requests to it. */

import { createHash, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type HostProcess, startHostProcess } from '../../../src/local/host-process.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what a body holds is what the test says
  readonly body: any;
}

export class App {
  readonly host: HostProcess;
  readonly output: string[];

  private constructor(host: HostProcess, output: string[]) {
    this.host = host;
    this.output = output;
  }

  static async start(options: {
    readonly connectionString: string;
    readonly settings?: Readonly<Record<string, string>>;
    readonly stateDirectory?: string;
  }): Promise<App> {
    const output: string[] = [];
    const host = await startHostProcess({
      appDirectory: ROOT,
      stateDirectory: options.stateDirectory,
      settings: { TASK_HUB: `test${randomUUID().slice(0, 8)}`, ...options.settings },
      secrets: {
        ARIUS_STORAGE_CONNECTION_STRING: options.connectionString,
        AzureWebJobsStorage: options.connectionString,
        DurableStorage: options.connectionString,
      },
      onOutput: (line) => output.push(line),
    });
    return new App(host, output);
  }

  async request(method: 'GET' | 'POST', path: string, body?: unknown, key = this.host.functionKey): Promise<Answer> {
    const response = await fetch(`${this.host.url}/api/${path}`, {
      method,
      headers: { 'x-functions-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  async get(path: string): Promise<Answer> {
    return await this.request('GET', path);
  }

  async post(path: string, body: unknown): Promise<Answer> {
    return await this.request('POST', path, body);
  }

  /** Asks for an operation until it is over. */
  async ended(repository: string, operationId: string): Promise<Answer> {
    for (;;) {
      const answer = await this.get(`repositories/${repository}/operations/${operationId}`);
      if (answer.status !== 200 || answer.body.state === 'succeeded' || answer.body.state === 'failed') {
        return answer;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Puts a body under a create-only grant. */
  async put(
    repository: string,
    name: string,
    body: Uint8Array,
    metadata: Record<string, string> = {},
  ): Promise<number> {
    const granted = await this.post(`repositories/${repository}/grants`, { purpose: 'create', names: [name] });
    return await putBlob(granted.body.grants[0].url, body, metadata);
  }
}

export async function putBlob(url: string, body: Uint8Array, metadata: Record<string, string>): Promise<number> {
  const response = await fetch(url, {
    method: 'PUT',
    headers: {
      'x-ms-blob-type': 'BlockBlob',
      'x-ms-version': '2021-12-02',
      'x-ms-access-tier': 'Cool',
      'if-none-match': '*',
      ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`x-ms-meta-${key}`, value])),
    },
    body: Buffer.from(body),
  });
  await response.arrayBuffer();
  return response.status;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
