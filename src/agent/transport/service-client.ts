/**
 * The agent's side of the HTTP contract: one method for every route, checked with the contract's own schemas. What can
 * be asked again is asked again, a bounded number of times; every failure leaves as an AriusError.
 */

import { Agent, type Dispatcher, request } from 'undici';
import type { z } from 'zod';
import { ROUTES, type RouteName } from '../../contract/routes.ts';
import { problem } from '../../contract/schemas.ts';
import { AriusError } from '../../errors.ts';
import { HTTP_ATTEMPTS_MAX, HTTP_SILENCE_MS_MAX } from '../../limits.ts';
import { reasonOf } from '../files/system-errors.ts';
import { backoffMs, type Sleep, sleep } from './retry.ts';

type ResponseOf<N extends RouteName> = z.infer<(typeof ROUTES)[N]['response']>;
type RequestOf<N extends RouteName> = (typeof ROUTES)[N] extends { request: infer R extends z.ZodType }
  ? { readonly body: z.input<R> }
  : { readonly body?: undefined };

export type CallInput<N extends RouteName> = RequestOf<N> & {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
};

export interface ServiceClientOptions {
  /** Of the service, without `/api`. */
  readonly url: string;
  readonly functionKey: string | undefined;
  readonly signal: AbortSignal;
  readonly sleep?: Sleep;
  /** Attempts of one call; fewer while it is not yet known that a service answers there. */
  readonly attemptsMax?: number;
}

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterSeconds: number | undefined;
}

const NEXT_UNREACHABLE = 'Check the address and that the service runs, then run the same command again.';

export class ServiceClient {
  readonly url: string;
  readonly #options: ServiceClientOptions;
  readonly #dispatcher: Dispatcher;

  constructor(options: ServiceClientOptions) {
    this.url = options.url.replace(/\/+$/, '');
    this.#options = options;
    this.#dispatcher = new Agent({
      connections: 16,
      headersTimeout: HTTP_SILENCE_MS_MAX,
      bodyTimeout: HTTP_SILENCE_MS_MAX,
      connect: { timeout: 10_000 },
    });
  }

  async call<N extends RouteName>(route: N, input: CallInput<N>): Promise<ResponseOf<N>> {
    const attemptsMax = this.#options.attemptsMax ?? HTTP_ATTEMPTS_MAX;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(route, input);
      if ('value' in outcome) {
        return outcome.value;
      }
      if (!outcome.again || attempt >= attemptsMax) {
        throw outcome.error;
      }
      const waitMs = backoffMs(attempt, outcome.error.retryAfterSeconds);
      await (this.#options.sleep ?? sleep)(waitMs, this.#options.signal);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  async #attempt<N extends RouteName>(
    route: N,
    input: AnyInput,
  ): Promise<{ value: ResponseOf<N> } | { error: AriusError; again: boolean }> {
    let answer: Answer;
    try {
      answer = await this.#send(route, input);
    } catch (error) {
      this.#options.signal.throwIfAborted();
      return { error: this.#unreachable(error), again: true };
    }
    if (answer.status >= 200 && answer.status < 300) {
      return this.#parse(route, answer);
    }
    const error = this.#errorOf(route, answer);
    return { error, again: isRepeatable(answer.status, error) };
  }

  async #send(route: RouteName, input: AnyInput): Promise<Answer> {
    const { method, path } = ROUTES[route];
    const target = new URL(`${this.url}/api/${fillPath(path, input.params ?? {})}`);
    for (const [name, value] of Object.entries(input.query ?? {})) {
      if (value !== undefined) {
        target.searchParams.set(name, value);
      }
    }
    const response = await request(target, {
      method,
      dispatcher: this.#dispatcher,
      signal: this.#options.signal,
      headers: {
        accept: 'application/json',
        ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.#options.functionKey === undefined ? {} : { 'x-functions-key': this.#options.functionKey }),
      },
      body: input.body === undefined ? null : JSON.stringify(input.body),
    });
    const retryAfter = Number(response.headers['retry-after']);
    return {
      status: response.statusCode,
      text: await response.body.text(),
      retryAfterSeconds: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
    };
  }

  #parse<N extends RouteName>(
    route: N,
    answer: Answer,
  ): { value: ResponseOf<N> } | { error: AriusError; again: boolean } {
    const parsed = ROUTES[route].response.safeParse(parseJson(answer.text));
    if (parsed.success) {
      return { value: parsed.data as ResponseOf<N> };
    }
    const detail = `${this.url} did not answer ${ROUTES[route].path} as an Arius Functions service does.`;
    return { error: new AriusError('service-unreachable', detail, NEXT_UNREACHABLE), again: false };
  }

  #errorOf(route: RouteName, answer: Answer): AriusError {
    const parsed = problem.safeParse(parseJson(answer.text));
    if (parsed.success) {
      const { retryAfterSeconds, ...rest } = parsed.data;
      const seconds = retryAfterSeconds ?? answer.retryAfterSeconds;
      return AriusError.fromProblem(seconds === undefined ? rest : { ...rest, retryAfterSeconds: seconds });
    }
    if (answer.status === 401 || answer.status === 403) {
      const detail = `${this.url} refuses this key or token.`;
      return new AriusError('unauthorized', detail, 'Pass the right one with --token or ARIUS_TOKEN.');
    }
    const detail = `${this.url} answered ${ROUTES[route].path} with HTTP ${answer.status} and no explanation.`;
    return new AriusError('service-unreachable', detail, NEXT_UNREACHABLE, {
      ...(answer.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: answer.retryAfterSeconds }),
    });
  }

  #unreachable(cause: unknown): AriusError {
    const reason = reasonOf(cause);
    return new AriusError('service-unreachable', `${this.url} cannot be reached: ${reason}.`, NEXT_UNREACHABLE, {
      cause,
    });
  }
}

/** All calls of the API are idempotent, so a lost response is asked again as well as a refused one. */
function isRepeatable(status: number, error: AriusError): boolean {
  if (error.code === 'storage-failed' || error.code === 'busy' || error.code === 'pending-not-flushed') {
    return true;
  }
  return status === 408 || status === 429 || status === 500 || status === 502 || status === 503 || status === 504;
}

function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) {
      throw new Error(`the route ${path} needs ${name}`);
    }
    return encodeURIComponent(value);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
