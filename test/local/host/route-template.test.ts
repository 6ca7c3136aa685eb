import { describe, expect, it } from 'vitest';
import { matchTemplate, parseTemplate } from '../../../src/local/host/route-template.ts';

function match(template: string, path: string): Record<string, string> | undefined {
  return matchTemplate(parseTemplate(template), path.split('/'));
}

describe('a route template', () => {
  it.each([
    ['a/{x}', 'A/1', { x: '1' }],
    ['a/{x?}', 'a', {}],
    ['a/{*rest}', 'a', {}],
    ['a/{*rest}', 'a/b/c', { rest: 'b/c' }],
    ['a/{**rest}', 'a/b', { rest: 'b' }],
    ['{x}', 'a%2Fb%20c', { x: 'a%2Fb c' }],
    ['{x:int}', '-12', { x: '-12' }],
    ['{x:guid}', '0b1c2d3e-0000-0000-0000-00000000000a', { x: '0b1c2d3e-0000-0000-0000-00000000000a' }],
    ['{x:length(3)}', 'abc', { x: 'abc' }],
    ['{x:range(1,9):int}', '9', { x: '9' }],
    ['{x:regex(^[a-f]{{2}}(/|$))}', 'ab', { x: 'ab' }],
    ['{x:minlength(2):maxlength(3):alpha?}', 'ab', { x: 'ab' }],
    ['{x:bool}', 'True', { x: 'True' }],
    ['{x:datetime}', '2026-01-02', { x: '2026-01-02' }],
  ])('%s matches %s', (template, path, params) => {
    expect(match(template, path)).toEqual(params);
  });

  it.each([
    ['a/{x}', 'a'],
    ['a/{x}', 'a/'],
    ['a/{x}', 'a/b/c'],
    ['a', 'b'],
    ['{x:int}', '1.5'],
    ['{x:length(2,3)}', 'a'],
    ['{x:max(5)}', '6'],
    ['{x:regex(^a$)}', 'b'],
    ['{x:guid}', 'nope'],
    ['{x}', '%zz'],
  ])('%s does not match %s', (template, path) => {
    expect(match(template, path)).toBeUndefined();
  });

  it.each(['{x}-{y}', '{x=5}', '{x:even}', '{x:length(a)}', '{x:min}', 'a/{x?}/b', '{*rest}/b', '{'])(
    '%s is refused',
    (template) => {
      expect(() => parseTemplate(template)).toThrow('Route');
    },
  );
});
