import { describe, expect, it } from 'vitest';
import { checksKeys, useSample } from './target.ts';

const sample = useSample();

async function get(path: string, key?: string): Promise<{ status: number; text: string }> {
  const response = await sample.fetch(path, { headers: key === undefined ? {} : { 'x-functions-key': key } });
  return { status: response.status, text: await response.text() };
}

/** A host whose function key was not told has been given the master key for it: then no key at all. */
function otherThanMaster(): string {
  return sample.functionKey === sample.masterKey ? '' : sample.functionKey;
}

describe('an HTTP function', () => {
  it('answers under the route prefix by its name', async () => {
    expect(await get('/api/hello')).toEqual({ status: 200, text: 'hello' });
    expect(await get('/api/HELLO/')).toEqual({ status: 200, text: 'hello' });
  });

  it('gets method, URL, route parameters, query, headers and body, and sets status, headers and cookies', async () => {
    const url = `/api/echo/a%20b/-7?x=1&x=2&y=%26&code=${sample.functionKey}`;
    const response = await sample.fetch(url, { method: 'POST', headers: { 'X-Custom': 'c' }, body: 'größe' });
    expect(response.status).toBe(201);
    expect(response.headers.get('x-kind')).toBe('a b');
    expect(response.headers.get('set-cookie')).toBe('seen=a%20b; Path=/; HttpOnly; SameSite=Strict');
    expect(await response.json()).toEqual({
      method: 'POST',
      url: sample.url + url,
      params: { kind: 'a b', id: '-7' },
      query: { x: '1,2', y: '&', code: sample.functionKey },
      custom: 'c',
      text: 'größe',
    });
  });

  it('passes bytes through unchanged', async () => {
    const body = new Uint8Array(50_000).map((_, index) => index * 7);
    const response = await sample.fetch('/api/bytes', { method: 'POST', body });
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(body);
    // Whatever the function says about the way it travels.
    expect(response.headers.get('content-length')).toBe('50000');
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
  });

  it('is found by the most specific route', async () => {
    const route = async (path: string): Promise<unknown> => JSON.parse((await get(path)).text);
    expect(await route('/api/items/Special')).toEqual({ route: 'literal' });
    expect(await route('/api/items/10')).toEqual({ route: 'number', id: '10' });
    expect(await route('/api/items/9')).toEqual({ route: 'plain', name: '9' });
    expect(await route('/api/items/a/b')).toEqual({ route: 'plain', name: 'a', part: 'b' });
    expect(await route('/api/items/a%2Fb')).toEqual({ route: 'plain', name: 'a%2Fb' });
    expect(await route('/api/items/a/b/c%20d')).toEqual({ route: 'rest', rest: 'a/b/c d' });
    expect(await route('/api/items')).toEqual({ route: 'rest' });
  });

  it('answers an unknown path, a wrong method and a failed constraint with an empty 404', async () => {
    expect(await get('/api/unknown')).toEqual({ status: 404, text: '' });
    expect(await get('/hello')).toEqual({ status: 404, text: '' });
    expect((await sample.fetch('/api/hello', { method: 'POST' })).status).toBe(404);
    expect((await get('/api/echo/a/b')).status).toBe(404);
  });

  it('answers an empty 204 when it returns nothing and an empty 500 when it throws', async () => {
    expect(await get('/api/nothing')).toEqual({ status: 204, text: '' });
    expect(await get('/api/broken')).toEqual({ status: 500, text: '' });
  });

  it('sees what a preInvocation hook did', async () => {
    expect((await get('/api/hooked')).text).toBe('by a hook');
  });
});

describe.runIf(checksKeys)('keys', () => {
  it('open a function by the host key, its own key or the master key, in the header or the query', async () => {
    const call = async (init: RequestInit, query = ''): Promise<number> =>
      (await sample.fetch(`/api/echo/a/1${query}`, { method: 'PUT', ...init })).status;
    expect(await call({})).toBe(401);
    expect(await call({ headers: { 'x-functions-key': 'wrong' } })).toBe(401);
    expect(await call({ headers: { 'x-functions-key': sample.functionKey } })).toBe(201);
    expect(await call({ headers: { 'x-functions-key': sample.masterKey } })).toBe(201);
    expect(await call({}, `?code=${sample.functionKey}`)).toBe(201);
  });

  it('open an admin function by the master key only', async () => {
    expect(await get('/api/secret-room', 'wrong')).toEqual({ status: 401, text: '' });
    expect(await get('/api/secret-room', otherThanMaster())).toEqual({ status: 401, text: '' });
    expect(await get('/api/secret-room', sample.masterKey)).toEqual({ status: 200, text: 'in' });
  });

  it('open the admin endpoints by the master key only', async () => {
    expect((await get('/admin/host/ping')).status).toBe(200);
    expect((await get('/admin/host/status')).status).toBe(401);
    expect((await get('/admin/host/status', otherThanMaster())).status).toBe(401);
    const status = await get('/admin/host/status', sample.masterKey);
    expect(JSON.parse(status.text)).toMatchObject({ state: 'Running' });
  });
});

describe('the listener', () => {
  it('refuses a body above the limit', async () => {
    const body = new Uint8Array(100_001);
    expect((await sample.fetch('/api/bytes', { method: 'POST', body })).status).toBe(413);
    const stream = new Response(body).body;
    const init = { method: 'POST', body: stream, duplex: 'half' } as RequestInit;
    expect((await sample.fetch('/api/bytes', init)).status).toBe(413);
  });

  it('refuses headers above the limit', async () => {
    const response = await sample.fetch('/api/hello', { headers: { 'x-long': 'x'.repeat(40_000) } });
    expect(response.status).toBe(431);
  });

  it('answers 400 to a path that cannot be decoded', async () => {
    expect((await get('/api/%zz')).status).toBe(400);
  });
});
