/**
 * ASP.NET route templates: literals, `{p}`, `{p?}`, `{*rest}` and constraints. A segment is a literal or one
 * parameter, never a mixture. Literals match in any case; parameters are decoded except for an encoded slash.
 */

import { RegistrationError } from './registry.ts';

type Constraint = (value: string) => boolean;

export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | {
      readonly kind: 'parameter';
      readonly name: string;
      readonly optional: boolean;
      readonly constraints: Constraint[];
    }
  | { readonly kind: 'rest'; readonly name: string; readonly constraints: Constraint[] };

const WITHOUT_ARGUMENT: Record<string, Constraint> = {
  int: (value) => /^[+-]?\d+$/.test(value) && Math.abs(Number(value)) < 2 ** 31,
  long: (value) => /^[+-]?\d{1,19}$/.test(value),
  guid: (value) => /^\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?$/i.test(value),
  alpha: (value) => /^[a-z]*$/i.test(value),
  bool: (value) => /^(true|false)$/i.test(value),
  datetime: (value) => !Number.isNaN(Date.parse(value)),
  decimal: (value) => /^[+-]?\d+(\.\d+)?$/.test(value),
  double: (value) => value.trim() !== '' && !Number.isNaN(Number(value)),
  float: (value) => value.trim() !== '' && !Number.isNaN(Number(value)),
  required: (value) => value !== '',
};

const WITH_ARGUMENTS: Record<string, (...args: number[]) => Constraint> = {
  length:
    (min = 0, max = min) =>
    (value) =>
      value.length >= min && value.length <= max,
  minlength:
    (min = 0) =>
    (value) =>
      value.length >= min,
  maxlength:
    (max = 0) =>
    (value) =>
      value.length <= max,
  min:
    (min = 0) =>
    (value) =>
      /^[+-]?\d+$/.test(value) && Number(value) >= min,
  max:
    (max = 0) =>
    (value) =>
      /^[+-]?\d+$/.test(value) && Number(value) <= max,
  range:
    (min = 0, max = 0) =>
    (value) =>
      /^[+-]?\d+$/.test(value) && Number(value) >= min && Number(value) <= max,
};

export function parseTemplate(template: string): Segment[] {
  const texts = splitOutsideBraces(template.replace(/^\/+|\/+$/g, ''), '/');
  const segments = texts.filter((text) => text !== '').map((text) => parseSegment(text, template));
  const early = segments.slice(0, -1).find((segment) => segment.kind === 'rest' || isOptional(segment));
  if (early !== undefined) throw new RegistrationError(`Route "${template}": only the last segment may be open.`);
  return segments;
}

/** The parameters when the path matches, else undefined. `path` holds raw, still encoded segments. */
export function matchTemplate(
  segments: readonly Segment[],
  path: readonly string[],
): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const raw = segment.kind === 'rest' ? path.slice(index).join('/') : path[index];
    if (raw === undefined || raw === '') {
      if (segment.kind === 'rest' || isOptional(segment)) continue;
      return undefined;
    }
    const value = decodeSegment(raw);
    if (value === undefined) return undefined;
    if (segment.kind === 'literal') {
      if (value.toLowerCase() !== segment.text.toLowerCase()) return undefined;
    } else {
      if (!segment.constraints.every((accepts) => accepts(value))) return undefined;
      params[segment.name] = value;
    }
  }
  const open = segments.at(-1)?.kind === 'rest';
  return open || path.length <= segments.length ? params : undefined;
}

/** Smaller is tried first: literal, constrained parameter, parameter, constrained rest, rest. */
export function precedence(segment: Segment): number {
  if (segment.kind === 'literal') return 0;
  const constrained = segment.constraints.length > 0 ? 0 : 1;
  return (segment.kind === 'parameter' ? 1 : 3) + constrained;
}

function isOptional(segment: Segment): boolean {
  return segment.kind === 'parameter' && segment.optional;
}

function decodeSegment(raw: string): string | undefined {
  try {
    return raw
      .split(/(%2f)/i)
      .map((part) => (/^%2f$/i.test(part) ? part : decodeURIComponent(part)))
      .join('');
  } catch {
    return undefined;
  }
}

function parseSegment(text: string, template: string): Segment {
  if (!/[{}]/.test(text)) return { kind: 'literal', text };
  const match = /^\{(\*{0,2})([A-Za-z_][A-Za-z0-9_-]*)((?::.*?)?)(\??)\}$/.exec(text);
  if (match === null) throw new RegistrationError(`Route "${template}": the segment "${text}" is not supported.`);
  const [, stars = '', name = '', constraintText = '', question = ''] = match;
  const constraints = splitOutsideBraces(constraintText, ':')
    .filter((part) => part !== '')
    .map((part) => parseConstraint(part, template));
  if (stars !== '') return { kind: 'rest', name, constraints };
  return { kind: 'parameter', name, optional: question === '?', constraints };
}

function parseConstraint(text: string, template: string): Constraint {
  const [, name = '', argument] = /^(\w+)(?:\((.*)\))?$/.exec(text) ?? [];
  const key = name.toLowerCase();
  if (key === 'regex' && argument !== undefined) {
    const expression = new RegExp(argument.replaceAll('{{', '{').replaceAll('}}', '}').replaceAll('\\\\', '\\'), 'i');
    return (value) => expression.test(value);
  }
  const simple = argument === undefined ? WITHOUT_ARGUMENT[key] : undefined;
  if (simple !== undefined) return simple;
  const numbers = (argument ?? '').split(',').map(Number);
  const build = WITH_ARGUMENTS[key];
  if (build === undefined || argument === undefined || numbers.some(Number.isNaN)) {
    throw new RegistrationError(`Route "${template}": unknown constraint "${text}".`);
  }
  return build(...numbers);
}

/** Constraints may hold the separator inside parentheses, and a regex braces. */
function splitOutsideBraces(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (character === '{' || character === '(') depth += 1;
    if (character === '}' || character === ')') depth -= 1;
    if (character === separator && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, text.slice(start)];
}
