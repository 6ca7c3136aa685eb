/** The API as an OpenAPI 3.1 document, made from the very schemas that requests are checked with. */

import { z } from 'zod';
import { ROUTES, type Route } from './routes.ts';
import { pathParameters, problem } from './schemas.ts';

type Json = Record<string, unknown>;

export function openApiDocument(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    const path = `/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(name, route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Arius Functions',
      version,
      description: 'The service of a deduplicating archive. Sizes are bytes; times are ISO 8601, UTC.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api' }],
    security: [{ functionKey: [] }],
    paths,
    components: {
      securitySchemes: { functionKey: { type: 'apiKey', in: 'header', name: 'x-functions-key' } },
      schemas: { problem: schemaOf(problem, 'output') },
    },
  };
}

function operationOf(name: string, route: Route): Json {
  return {
    operationId: name,
    summary: route.summary,
    parameters: [...pathParametersOf(route), ...queryParametersOf(route)],
    ...(route.request === undefined
      ? {}
      : { requestBody: { required: true, content: jsonContent(schemaOf(route.request, 'input')) } }),
    responses: {
      [String(route.status)]: {
        description: route.summary,
        content: jsonContent(schemaOf(route.response, 'output')),
      },
      default: {
        description: 'A problem (RFC 9457) with a stable code and the next step',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/problem' } } },
      },
    },
  };
}

function pathParametersOf(route: Route): Json[] {
  const schemas: Readonly<Record<string, z.ZodType>> = pathParameters;
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const schema = schemas[name];
    if (schema === undefined) {
      throw new Error(`The path of a route has a parameter without a schema: ${name}`);
    }
    return { name, in: 'path', required: true, schema: schemaOf(schema, 'input') };
  });
}

function queryParametersOf(route: Route): Json[] {
  return Object.entries(route.query ?? {}).map(([name, description]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: 'string' },
  }));
}

function jsonContent(schema: Json): Json {
  return { 'application/json': { schema } };
}

/** The dialect of OpenAPI 3.1 is JSON Schema 2020-12 itself. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return json;
}
