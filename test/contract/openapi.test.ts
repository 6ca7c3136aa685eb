import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/contract/openapi.ts';
import { ROUTES } from '../../src/contract/routes.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: unknown }>>;
}

const document = openApiDocument('1.2.3');
const paths = document.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Every `$ref` of the document, with the place it points to. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : references(inner),
  );
}

function at(pointer: string): unknown {
  return pointer
    .slice('#/'.length)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

describe('openapi.json', () => {
  it('is a document of OpenAPI 3.1 whose references all resolve', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' }, servers: [{ url: '/api' }] });
    const pointers = references(document);
    expect(pointers.length).toBeGreaterThan(10);
    expect(pointers.filter((pointer) => at(pointer) === undefined)).toEqual([]);
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
  });

  it('lists every route with its parameters, bodies and responses, and none besides', () => {
    const listed = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => `${operation.operationId} ${method} ${path}`),
    );
    const expected = Object.entries(ROUTES).map(
      ([name, route]) => `${name} ${route.method.toLowerCase()} /${route.path}`,
    );
    expect(listed.sort()).toEqual(expected.sort());
    for (const [name, route] of Object.entries(ROUTES)) {
      const operation = paths[`/${route.path}`]?.[route.method.toLowerCase()];
      const inPath = operation?.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
      expect(inPath, name).toEqual([...route.path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter));
      expect(
        operation?.parameters.filter((parameter) => parameter.in === 'path').every(({ required }) => required),
      ).toBe(true);
      expect(operation?.requestBody !== undefined, name).toBe('request' in route);
      expect(Object.keys(operation?.responses ?? {}), name).toEqual([String(route.status), 'default']);
    }
  });

  it('describes requests as they are checked', () => {
    const lookup = paths['/repositories/{repository}/chunks/lookup']?.post;
    const text = JSON.stringify(lookup?.requestBody);
    expect(text).toContain('"maxItems":1000');
    expect(text).toContain('"additionalProperties":false');
    expect(text).not.toContain('$schema');
  });
});
