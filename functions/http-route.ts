/**
 * One wrapper for all routes: it registers a route of the contract, and turns a request into a call of its use case and the
 * outcome into a response. Use cases throw; here alone an error becomes problem+json.
 */

import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { app } from '@azure/functions';
import type { z } from 'zod';
import { ROUTES, type Route, type RouteName } from '../src/contract/routes.ts';
import { pathParameters } from '../src/contract/schemas.ts';
import type { Problem } from '../src/errors.ts';
import { REQUEST_BODY_BYTES_MAX } from '../src/limits.ts';
import { type Access, authorize, keyLevelOf } from '../src/service/access.ts';
import { serviceOfProcess } from '../src/service/composition.ts';
import { badRequest } from '../src/service/refusals.ts';
import type { Service } from '../src/service/service.ts';
import { type ErrorLog, problemOf } from './problems.ts';

type Routes = typeof ROUTES;
type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterNames<Rest>
  : never;
type BodyOf<N extends RouteName> = Routes[N] extends { readonly request: infer Schema extends z.ZodType }
  ? z.infer<Schema>
  : undefined;
type ResponseOf<N extends RouteName> = z.input<Routes[N]['response']>;

export interface Call<N extends RouteName> {
  readonly access: Access;
  readonly path: Readonly<Record<ParameterNames<Routes[N]['path']>, string>>;
  readonly query: URLSearchParams;
  readonly body: BodyOf<N>;
  readonly log: ErrorLog;
}

export interface Reply<N extends RouteName> {
  readonly body: ResponseOf<N>;
  readonly headers?: Readonly<Record<string, string>>;
}

export type UseCase<N extends RouteName> = (service: Service, call: Call<N>) => Promise<Reply<N>>;

/** Responds to one request, with the service given. */
export type Responder = (
  service: () => Promise<Service>,
  request: HttpRequest,
  log: ErrorLog,
) => Promise<HttpResponseInit>;

/** Every registered route; how a test sends a request without a host. */
export const registeredRoutes = new Map<RouteName, Responder>();

export function route<N extends RouteName>(name: N, useCase: UseCase<N>): void {
  const contract: Route = ROUTES[name];
  const responder: Responder = async (service, request, log) => {
    try {
      const call = await callOf(name, contract, request, log);
      const reply = await useCase(await service(), call);
      return { status: contract.status, jsonBody: reply.body, headers: { ...reply.headers } };
    } catch (error) {
      return failure(problemOf(error, log, `${contract.method} ${contract.path}`));
    }
  };
  registeredRoutes.set(name, responder);
  app.http(`api-${name}`, {
    methods: [contract.method],
    route: contract.path,
    authLevel: keyLevelOf(name),
    handler: async (request: HttpRequest, context: InvocationContext) =>
      await responder(serviceOfProcess, request, context),
  });
}

/** A route whose answer needs no service. */
export function unservedRoute<N extends RouteName>(name: N, answer: () => ResponseOf<N>): void {
  const contract: Route = ROUTES[name];
  const response = (): HttpResponseInit => ({ status: contract.status, jsonBody: answer() });
  registeredRoutes.set(name, () => Promise.resolve(response()));
  app.http(`api-${name}`, {
    methods: [contract.method],
    route: contract.path,
    authLevel: keyLevelOf(name),
    handler: () => response(),
  });
}

async function callOf<N extends RouteName>(
  name: N,
  contract: Route,
  request: HttpRequest,
  log: ErrorLog,
): Promise<Call<N>> {
  const access = authorize(name, request.params.repository);
  for (const [parameter, value] of Object.entries(request.params)) {
    requireParameter(parameter, value);
  }
  const body = contract.request === undefined ? undefined : parseBody(contract.request, await readBody(request));
  // The route template and the schema of the very route have just been applied.
  return { access, path: request.params, query: new URL(request.url).searchParams, body, log } as unknown as Call<N>;
}

function requireParameter(name: string, value: string): void {
  const schema: z.ZodType | undefined = (pathParameters as Readonly<Record<string, z.ZodType>>)[name];
  const parsed = schema?.safeParse(value);
  if (parsed?.success !== true) {
    throw badRequest(`${name} in the path: ${parsed === undefined ? 'not expected' : issuesOf(parsed.error)}.`);
  }
}

async function readBody(request: HttpRequest): Promise<string> {
  const announced = Number(request.headers.get('content-length') ?? '0');
  const bytes = announced > REQUEST_BODY_BYTES_MAX ? undefined : await request.arrayBuffer();
  if (bytes === undefined || bytes.byteLength > REQUEST_BODY_BYTES_MAX) {
    throw badRequest(`The body is larger than ${REQUEST_BODY_BYTES_MAX} bytes.`);
  }
  return new TextDecoder().decode(bytes);
}

function parseBody(schema: z.ZodType, text: string): unknown {
  let json: unknown;
  try {
    json = JSON.parse(text === '' ? '{}' : text);
  } catch {
    throw badRequest('The body is not JSON.');
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    throw badRequest(`The body does not have the expected form: ${issuesOf(parsed.error)}.`);
  }
  return parsed.data;
}

/** The first few of what is wrong, each with its place. */
function issuesOf(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`))
    .join('; ');
}

function failure(problem: Problem): HttpResponseInit {
  const retryAfter = problem.retryAfterSeconds;
  return {
    status: problem.status,
    body: JSON.stringify(problem),
    headers: {
      'Content-Type': 'application/problem+json',
      ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    },
  };
}
