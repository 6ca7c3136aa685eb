/** Enough of the Blob service's REST interface for Azure's library, our adapter and agents' plain requests. */

import { BlobBody } from '../../../src/storage/memory/blob-body.ts';
import type { BlobStore, StoredBlobOptions } from '../../../src/storage/memory/blob-store.ts';
import type { MemoryAccount } from '../../../src/storage/memory/memory-account.ts';
import type { AccessTier, BlobProperties, ByteRange, WriteCondition } from '../../../src/storage/ports.ts';
import { StorageRefusal } from '../../../src/storage/refusal.ts';
import { type BlobAccess, requireAccess, requireContainerAccess } from './blob-access.ts';
import {
  escapeXml,
  type RestAnswer,
  type RestRequest,
  refusalAnswer,
  unescapeXml,
  unsupported,
  xmlAnswer,
} from './rest.ts';

const LIST_PAGE = 5000;
/** A body's MD5 is computed for a HEAD up to this size; the real service has it at hand. */
const HEAD_MD5_BYTES_MAX = 1024 * 1024;
const READ_PIECE_BYTES = 1024 * 1024;

export interface BlobRest {
  readonly account: MemoryAccount;
  /** Of the URL a block is copied from: as `handleBlob` gets it. */
  readonly sourceRequest: (url: string) => { request: RestRequest; access: BlobAccess };
}

/** Never throws a refusal: it answers it. */
export function handleBlob(rest: BlobRest, request: RestRequest, access: BlobAccess, body: BlobBody): RestAnswer {
  try {
    const [container, ...names] = request.path;
    if (container === undefined || container === '') {
      return handleAccount(rest.account, request, access);
    }
    return names.length === 0
      ? handleContainer(rest.account, container, request, access)
      : handleOneBlob(rest, container, names.join('/'), request, access, body);
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return refusalAnswer(error, request.method);
    }
    throw error;
  }
}

function handleAccount(account: MemoryAccount, request: RestRequest, access: BlobAccess): RestAnswer {
  if (request.method !== 'GET' || request.query.get('comp') !== 'list') {
    throw unsupported(request);
  }
  requireContainerAccess(access, '');
  const { names, continuation } = account.listContainers(
    request.query.get('prefix') ?? '',
    request.query.get('marker') ?? undefined,
    Number(request.query.get('maxresults') ?? LIST_PAGE),
  );
  const containers = names.map((name) => `<Container><Name>${name}</Name><Properties/></Container>`);
  return xmlAnswer(
    200,
    `<EnumerationResults><Containers>${containers.join('')}</Containers><NextMarker>${continuation ?? ''}</NextMarker></EnumerationResults>`,
  );
}

function handleContainer(
  account: MemoryAccount,
  container: string,
  request: RestRequest,
  access: BlobAccess,
): RestAnswer {
  if (request.query.get('comp') === 'list') {
    requireContainerAccess(access, 'l');
    return listBlobs(account.container(container), request.query);
  }
  // No signature of a container allows requests on the container itself.
  requireContainerAccess(access, '');
  switch (request.method) {
    case 'PUT':
      account.createContainer(container, request.headers['x-ms-meta-arius_attempt']);
      return { status: 201, headers: { etag: '"0x1"', 'last-modified': account.now().toUTCString() } };
    case 'HEAD':
    case 'GET': {
      const { attemptId } = account.container(container);
      return {
        status: 200,
        headers: {
          etag: '"0x1"',
          'last-modified': account.now().toUTCString(),
          ...(attemptId === undefined ? {} : { 'x-ms-meta-arius_attempt': attemptId }),
        },
      };
    }
    case 'DELETE':
      account.deleteContainer(container);
      return { status: 202 };
    default:
      throw unsupported(request);
  }
}

function listBlobs(store: BlobStore, query: URLSearchParams): RestAnswer {
  const includeMetadata = (query.get('include') ?? '').split(',').includes('metadata');
  const page = store.list(query.get('prefix') ?? '', {
    includeMetadata,
    pageSize: Number(query.get('maxresults') ?? LIST_PAGE),
    ...(query.get('marker') ? { continuation: query.get('marker') as string } : {}),
  });
  const blobs = page.blobs.map(listedBlobXml).join('');
  return xmlAnswer(
    200,
    `<EnumerationResults><Blobs>${blobs}</Blobs><NextMarker>${page.continuation ?? ''}</NextMarker></EnumerationResults>`,
  );
}

function listedBlobXml(blob: BlobProperties): string {
  const metadata = Object.entries(blob.metadata ?? {}).map(([key, value]) => `<${key}>${escapeXml(value)}</${key}>`);
  const tier = blob.tier === undefined ? '' : `<AccessTier>${wireTier(blob.tier)}</AccessTier>`;
  return (
    `<Blob><Name>${escapeXml(blob.name)}</Name><Properties>` +
    `<Last-Modified>${blob.lastModified.toUTCString()}</Last-Modified><Etag>${blob.etag}</Etag>` +
    `<Content-Length>${blob.contentLengthBytes}</Content-Length>` +
    `<Content-Type>${escapeXml(blob.contentType ?? '')}</Content-Type>` +
    `<BlobType>${blob.tier === undefined ? 'AppendBlob' : 'BlockBlob'}</BlobType>${tier}</Properties>` +
    `${blob.metadata === undefined ? '' : `<Metadata>${metadata.join('')}</Metadata>`}</Blob>`
  );
}

function handleOneBlob(
  rest: BlobRest,
  container: string,
  name: string,
  request: RestRequest,
  access: BlobAccess,
  body: BlobBody,
): RestAnswer {
  const store = rest.account.container(container);
  switch (request.method) {
    case 'HEAD':
      requireAccess(access, 'r');
      return headBlob(store, name);
    case 'GET':
      requireAccess(access, 'r');
      return request.query.get('comp') === 'blocklist' ? blockList(store, name) : getBlob(store, name, request);
    case 'DELETE':
      requireAccess(access, 'd');
      store.delete(name, etagOf(request.headers['if-match']));
      return { status: 202 };
    case 'PUT':
      checkMd5(request, body);
      return putBlob(rest, store, name, request, access, body);
    default:
      throw unsupported(request);
  }
}

function putBlob(
  rest: BlobRest,
  store: BlobStore,
  name: string,
  request: RestRequest,
  access: BlobAccess,
  body: BlobBody,
): RestAnswer {
  const blockId = request.query.get('blockid') ?? '';
  switch (request.query.get('comp')) {
    case 'block':
      requireAccess(access, 'w');
      store.stageBlock(name, blockId, sourceBody(rest, request) ?? body);
      return { status: 201, headers: writtenHeaders(undefined) };
    case 'blocklist':
      requireAccess(access, 'w');
      return written(store.commitBlocks(name, blockIdsIn(textOf(body)), writeOptions(request)));
    case 'appendblock': {
      requireAccess(access, 'aw');
      const position = request.headers['x-ms-blob-condition-appendpos'];
      const sizeMax = request.headers['x-ms-blob-condition-maxsize'];
      return written(store.append(name, body, optionalNumber(position), optionalNumber(sizeMax)));
    }
    case null:
      requireMayPut(store, name, access);
      return request.headers['x-ms-blob-type'] === 'AppendBlob'
        ? written(store.createAppend(name, conditionOf(request)))
        : written(store.put(name, body, writeOptions(request)));
    default:
      throw unsupported(request);
  }
}

/** Create permission alone stops at a blob that exists, whatever the condition of the request. */
function requireMayPut(store: BlobStore, name: string, access: BlobAccess): void {
  requireAccess(access, 'cw');
  if (access !== undefined && !access.permissions.includes('w') && exists(store, name)) {
    throw new StorageRefusal(403, 'UnauthorizedBlobOverwrite');
  }
}

function exists(store: BlobStore, name: string): boolean {
  try {
    store.head(name);
    return true;
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return false;
    }
    throw error;
  }
}

function sourceBody(rest: BlobRest, request: RestRequest): BlobBody | undefined {
  const sourceUrl = request.headers['x-ms-copy-source'];
  if (sourceUrl === undefined) {
    return undefined;
  }
  const source = rest.sourceRequest(sourceUrl);
  requireAccess(source.access, 'r');
  const [container = '', ...names] = source.request.path;
  const range = rangeOf(request.headers['x-ms-source-range']);
  const found = rest.account.container(container).get(names.join('/'), range);
  if (range !== undefined && found.range.lengthBytes !== range.lengthBytes) {
    throw new StorageRefusal(416, 'InvalidRange');
  }
  return new BlobBody([
    ...found.body.views(found.range.offsetBytes, found.range.lengthBytes, Number.POSITIVE_INFINITY),
  ]);
}

function headBlob(store: BlobStore, name: string): RestAnswer {
  const head = store.head(name);
  const md5 = head.properties.contentLengthBytes <= HEAD_MD5_BYTES_MAX ? head.contentMd5() : undefined;
  return {
    status: 200,
    headers: {
      ...blobHeaders(head.properties),
      'content-length': head.properties.contentLengthBytes,
      ...(md5 === undefined ? {} : { 'content-md5': md5 }),
    },
  };
}

function getBlob(store: BlobStore, name: string, request: RestRequest): RestAnswer {
  const asked = rangeOf(request.headers['x-ms-range'] ?? request.headers.range);
  const { properties, body, range } = store.get(name, asked);
  const end = range.offsetBytes + range.lengthBytes;
  return {
    status: asked === undefined ? 200 : 206,
    headers: {
      ...blobHeaders(properties),
      'content-length': range.lengthBytes,
      ...(asked === undefined
        ? {}
        : { 'content-range': `bytes ${range.offsetBytes}-${end - 1}/${properties.contentLengthBytes}` }),
    },
    body: body.views(range.offsetBytes, range.lengthBytes, READ_PIECE_BYTES),
  };
}

function blockList(store: BlobStore, name: string): RestAnswer {
  const blocks = store.committedBlockIds(name).map((id) => `<Block><Name>${id}</Name><Size>0</Size></Block>`);
  return xmlAnswer(200, `<BlockList><CommittedBlocks>${blocks.join('')}</CommittedBlocks></BlockList>`);
}

function blobHeaders(blob: BlobProperties): Record<string, string> {
  const metadata = Object.entries(blob.metadata ?? {}).map(([key, value]) => [`x-ms-meta-${key}`, value]);
  return {
    ...writtenHeaders(blob.etag),
    'last-modified': blob.lastModified.toUTCString(),
    'content-type': blob.contentType ?? 'application/octet-stream',
    'accept-ranges': 'bytes',
    'x-ms-blob-type': blob.tier === undefined ? 'AppendBlob' : 'BlockBlob',
    ...(blob.tier === undefined ? {} : { 'x-ms-access-tier': wireTier(blob.tier) }),
    ...Object.fromEntries(metadata),
  };
}

function written(etag: string): RestAnswer {
  return { status: 201, headers: { ...writtenHeaders(etag), 'last-modified': new Date().toUTCString() } };
}

function writtenHeaders(etag: string | undefined): Record<string, string> {
  return { 'x-ms-version': '2026-04-06', ...(etag === undefined ? {} : { etag: `"${etag}"` }) };
}

function writeOptions(request: RestRequest): StoredBlobOptions {
  const { headers } = request;
  const metadata = Object.entries(headers)
    .filter(([header]) => header.startsWith('x-ms-meta-'))
    .map(([header, value]) => [header.slice('x-ms-meta-'.length), value ?? '']);
  return {
    condition: conditionOf(request),
    contentType: headers['x-ms-blob-content-type'] ?? headers['content-type'] ?? 'application/octet-stream',
    metadata: Object.fromEntries(metadata),
    tier: headers['x-ms-access-tier']?.toLowerCase() as AccessTier | undefined,
  };
}

function conditionOf(request: RestRequest): WriteCondition | undefined {
  const etag = etagOf(request.headers['if-match']);
  if (etag !== undefined) {
    return { etag };
  }
  return request.headers['if-none-match'] === '*' ? { absent: true } : undefined;
}

function etagOf(header: string | undefined): string | undefined {
  const etag = header?.replaceAll('"', '');
  return etag === '*' ? undefined : etag;
}

function rangeOf(header: string | undefined): ByteRange | undefined {
  const found = /^bytes=(\d+)-(\d*)$/.exec(header ?? '');
  if (found === null) {
    return undefined;
  }
  const offsetBytes = Number(found[1]);
  return { offsetBytes, lengthBytes: found[2] === '' ? Number.MAX_SAFE_INTEGER : Number(found[2]) - offsetBytes + 1 };
}

function checkMd5(request: RestRequest, body: BlobBody): void {
  const wanted = request.headers['x-ms-blob-content-md5'] ?? request.headers['content-md5'];
  if (wanted !== undefined && request.query.get('comp') !== 'blocklist' && wanted !== body.md5) {
    throw new StorageRefusal(400, 'Md5Mismatch');
  }
}

function blockIdsIn(xml: string): readonly string[] {
  return [...xml.matchAll(/<(?:Latest|Committed|Uncommitted)>([^<]*)<\//g)].map((found) => unescapeXml(found[1] ?? ''));
}

function textOf(body: BlobBody): string {
  return Buffer.concat([...body.views(0, body.lengthBytes, Number.POSITIVE_INFINITY)]).toString('utf8');
}

function optionalNumber(header: string | undefined): number | undefined {
  return header === undefined ? undefined : Number(header);
}

function wireTier(tier: AccessTier): string {
  return tier.charAt(0).toUpperCase() + tier.slice(1);
}
