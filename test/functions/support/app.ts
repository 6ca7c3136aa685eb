/** The whole function app, as built, in the local host over Azurite; and an agent's requests to it. */

import { createHash, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type HostProcess, type HostProcessOptions, startHostProcess } from '../../../src/local/host-process.ts';
import { type RestartingHost, startRestartingHost } from '../../support/restarting-host.ts';

/** A restart takes a second or two; on a machine under load, some. */
const ATTEMPTS_MAX = 300;

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what a body holds is what the test says
  readonly body: any;
}

export interface AppOptions {
  readonly connectionString: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly stateDirectory?: string;
}

type AnyHost = Pick<HostProcess, 'url' | 'functionKey' | 'stop'>;

export class App<Host extends AnyHost = HostProcess> {
  readonly host: Host;
  readonly output: string[];

  private constructor(host: Host, output: string[]) {
    this.host = host;
    this.output = output;
  }

  static async start(options: AppOptions): Promise<App> {
    const output: string[] = [];
    return new App(await startHostProcess(hostOptions(options, output)), output);
  }

  /** Killed all the time: see there. */
  static async startRestarting(
    options: AppOptions & { readonly stateDirectory: string; readonly commitsPerLife: number },
  ): Promise<App<RestartingHost>> {
    const output: string[] = [];
    const { stateDirectory, commitsPerLife } = options;
    const host = await startRestartingHost({ ...hostOptions(options, output), stateDirectory, commitsPerLife });
    return new App(host, output);
  }

  /** Asks again while the host is away, as the agent does. */
  async request(method: 'GET' | 'POST', path: string, body?: unknown, key = this.host.functionKey): Promise<Answer> {
    const init = {
      method,
      headers: { 'x-functions-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(`${this.host.url}/api/${path}`, init);
        const text = await response.text();
        // A host that starts or stops answers this, without a problem of the app.
        if (response.status === 503 && text === '') throw new Error('The host is not ready');
        return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
      } catch (error) {
        if (attempt === ATTEMPTS_MAX) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
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

function hostOptions(options: AppOptions, output: string[]): HostProcessOptions {
  return {
    appDirectory: ROOT,
    stateDirectory: options.stateDirectory,
    settings: { TASK_HUB: `test${randomUUID().slice(0, 8)}`, ...options.settings },
    secrets: {
      ARIUS_STORAGE_CONNECTION_STRING: options.connectionString,
      AzureWebJobsStorage: options.connectionString,
      DurableStorage: options.connectionString,
    },
    onOutput: (line) => output.push(line),
  };
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
