/** The sample app as a client sees it: everything over HTTP, whatever host runs it. */

import { randomBytes } from 'node:crypto';

export interface Status {
  name: string;
  instanceId: string;
  runtimeStatus: string;
  input: unknown;
  output: unknown;
  customStatus: unknown;
  createdTime: string;
  lastUpdatedTime: string;
  historyEvents?: Record<string, unknown>[];
}

export interface Answer {
  status: number;
  result?: unknown;
  error?: string;
}

export interface Address {
  readonly url: string;
  /** Empty where the host checks no keys. */
  readonly masterKey: string;
  readonly functionKey: string;
  /** How many times longer than on the local host everything may take. */
  readonly patience: number;
}

export class Sample {
  readonly #address: () => Address;
  readonly #prefix = `c${randomBytes(4).toString('hex')}`;

  /** The address is asked for at each use: tests hold the sample before its host has started. */
  constructor(address: () => Address) {
    this.#address = address;
  }

  get url(): string {
    return this.#address().url;
  }

  get masterKey(): string {
    return this.#address().masterKey;
  }

  get functionKey(): string {
    return this.#address().functionKey;
  }

  /** A name that no earlier run of the tests has used on this host. */
  id(name: string): string {
    return `${this.#prefix}-${name}`;
  }

  /** A span of time that means the same on a slower host. */
  ms(milliseconds: number): number {
    return milliseconds * this.#address().patience;
  }

  async pause(milliseconds: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.ms(milliseconds)));
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init);
  }

  /** The durable HTTP API with the master key. */
  async api(method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<Response> {
    return await this.fetch(`/runtime/webhooks/durabletask/${path}`, {
      method,
      headers: { 'x-functions-key': this.masterKey, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  }

  /** One call of the durable client inside the app. */
  async client(call: string, id = '', body: unknown = undefined): Promise<Answer> {
    const response = await this.fetch(`/api/client/${call}/${id}`, {
      method: 'POST',
      headers: { 'x-functions-key': this.functionKey },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, ...(text === '' ? {} : (JSON.parse(text) as object)) };
  }

  async start(name: string, input: unknown = {}, instanceId: string | undefined = undefined): Promise<string> {
    const answer = await this.client('start', name, { input, instanceId });
    if (answer.status !== 200) throw new Error(`start of ${name}: ${JSON.stringify(answer)}`);
    return answer.result as string;
  }

  /** The status body by the management URL, with history when wanted. */
  async status(id: string, query = ''): Promise<Status> {
    const response = await this.api('GET', `instances/${encodeURIComponent(id)}?${query}`);
    if (response.status === 404) throw new Error(`no instance ${id}`);
    return (await response.json()) as Status;
  }

  /** Waits until the instance has this status, or has ended. */
  async reached(id: string, runtimeStatus: string): Promise<Status> {
    return await until(
      () => this.status(id),
      (status) => status.runtimeStatus === runtimeStatus,
      this.ms(15_000),
    );
  }

  async ended(id: string, withinMs = 15_000): Promise<Status> {
    return await until(
      () => this.status(id),
      (status) => ['Completed', 'Failed', 'Terminated'].includes(status.runtimeStatus),
      this.ms(withinMs),
    );
  }

  async run(name: string, input: unknown = {}): Promise<Status> {
    return await this.ended(await this.start(name, input));
  }

  /** What the app's functions have noted since its process started, the lines that begin so. */
  async notes(prefix: string): Promise<string[]> {
    const response = await this.fetch(`/api/notes?prefix=${encodeURIComponent(prefix)}`);
    return (await response.json()) as string[];
  }
}

/** Polls until the value is as wanted; fails with the last value. */
export async function until<T>(read: () => Promise<T>, wanted: (value: T) => boolean, withinMs = 15_000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await read();
    if (wanted(value)) return value;
    if (Date.now() > deadline) throw new Error(`not reached: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
