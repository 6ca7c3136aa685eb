/** What the three REST front ends share: a request whose body was read, an answer, and refusals as answers. */

import { StorageRefusal } from '../../../src/storage/refusal.ts';

export interface RestRequest {
  readonly method: string;
  /** Path segments behind the account, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

export interface RestAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string | Iterable<Uint8Array>;
}

export function xmlAnswer(status: number, xml: string, headers: RestAnswer['headers'] = {}): RestAnswer {
  return {
    status,
    headers: { 'content-type': 'application/xml', ...headers },
    body: `<?xml version="1.0" encoding="utf-8"?>${xml}`,
  };
}

/** Of the blob and queue services; tables answer JSON. */
export function refusalAnswer(refusal: StorageRefusal, method: string): RestAnswer {
  const headers = { 'x-ms-error-code': refusal.code };
  return method === 'HEAD'
    ? { status: refusal.status, headers }
    : xmlAnswer(
        refusal.status,
        `<Error><Code>${escapeXml(refusal.code)}</Code><Message>${escapeXml(refusal.message)}</Message></Error>`,
        headers,
      );
}

export function unsupported(request: RestRequest): StorageRefusal {
  const path = request.path.join('/');
  return new StorageRefusal(501, `NotImplemented ${request.method} ${path}?${request.query}`.slice(0, 200));
}

const XML_ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => XML_ENTITIES[character] ?? character);
}

export function unescapeXml(text: string): string {
  return Object.entries(XML_ENTITIES)
    .reverse()
    .reduce((unescaped, [character, entity]) => unescaped.replaceAll(entity, character), text);
}
