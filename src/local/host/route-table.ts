/** Finds the HTTP function for a request. The most specific route wins; a wrong method or path finds none. */

import { type FunctionRegistry, type RegisteredFunction, RegistrationError } from './registry.ts';
import { matchTemplate, parseTemplate, precedence, type Segment } from './route-template.ts';

export type AuthLevel = 'anonymous' | 'function' | 'admin';

interface Route {
  readonly target: RegisteredFunction;
  readonly segments: readonly Segment[];
  readonly methods: ReadonlySet<string> | undefined;
  readonly authLevel: AuthLevel;
}

export interface RouteMatch {
  readonly target: RegisteredFunction;
  readonly authLevel: AuthLevel;
  readonly params: Record<string, string>;
}

export class RouteTable {
  readonly #routes: readonly Route[];

  constructor(registry: FunctionRegistry, routePrefix: string) {
    this.#routes = registry
      .ofTrigger('httpTrigger')
      .map((target) => routeOf(target, routePrefix))
      .sort(bySpecificity);
  }

  find(method: string, pathname: string): RouteMatch | undefined {
    const path = pathname.replace(/^\/+|\/+$/g, '').split('/');
    for (const route of this.#routes) {
      if (route.methods !== undefined && !route.methods.has(method)) continue;
      const params = matchTemplate(route.segments, path);
      if (params !== undefined) return { target: route.target, authLevel: route.authLevel, params };
    }
    return undefined;
  }
}

function routeOf(target: RegisteredFunction, routePrefix: string): Route {
  const { route, methods, authLevel } = target.trigger;
  const template = typeof route === 'string' && route !== '' ? route : target.name;
  const level = typeof authLevel === 'string' ? authLevel.toLowerCase() : 'function';
  if (level !== 'anonymous' && level !== 'function' && level !== 'admin') {
    throw new RegistrationError(`${target.name}: unknown authLevel "${level}".`);
  }
  return {
    target,
    segments: parseTemplate(`${routePrefix}/${template}`),
    methods: Array.isArray(methods) ? new Set(methods.map((method) => String(method).toUpperCase())) : undefined,
    authLevel: level,
  };
}

function bySpecificity(left: Route, right: Route): number {
  const length = Math.max(left.segments.length, right.segments.length);
  for (let index = 0; index < length; index += 1) {
    const [a, b] = [left.segments[index], right.segments[index]];
    const difference = (a === undefined ? -1 : precedence(a)) - (b === undefined ? -1 : precedence(b));
    if (difference !== 0) return difference;
  }
  return 0;
}
