/** The single requests of one container, over @azure/storage-blob. */

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  type BlobHTTPHeaders,
  type BlobItem,
  type BlobRequestConditions,
  type BlockBlobTier,
  ContainerClient,
} from '@azure/storage-blob';
import type {
  AccessTier,
  BlobPage,
  BlobPermission,
  BlobProperties,
  BlobWriteOptions,
  ByteRange,
  ListOptions,
  Metadata,
  OpenedBlob,
} from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import type { BlobHead, BlobRequests } from '../requests.ts';
import { SAS_PERMISSIONS } from '../sas-permissions.ts';
import { bodyOf } from './azure-body.ts';
import type { AzureClients } from './azure-clients.ts';
import { answered } from './azure-errors.ts';

/** Names the creation of a container, see BlobRequests.createContainer. */
const ATTEMPT_METADATA_KEY = 'arius_attempt';

const TIERS: Readonly<Record<AccessTier, BlockBlobTier | 'Cold'>> = {
  hot: 'Hot' as BlockBlobTier,
  cool: 'Cool' as BlockBlobTier,
  cold: 'Cold',
  archive: 'Archive' as BlockBlobTier,
};

export class AzureBlobRequests implements BlobRequests {
  readonly name: string;
  readonly #clients: AzureClients;
  readonly #container: ContainerClient;
  readonly #deadline: Date | undefined;

  /** `signed`: a container reached through a signature instead of the account's own credential. */
  constructor(clients: AzureClients, name: string, signed?: { container: ContainerClient; deadline: Date }) {
    this.name = name;
    this.#clients = clients;
    this.#container = signed?.container ?? clients.blobs.getContainerClient(name);
    this.#deadline = signed?.deadline;
  }

  async createContainer(attemptId: string): Promise<void> {
    const metadata = { [ATTEMPT_METADATA_KEY]: attemptId };
    await answered((abortSignal) => this.#container.create({ abortSignal, metadata }));
  }

  async headContainer(): Promise<string | undefined> {
    const { metadata } = await answered((abortSignal) => this.#container.getProperties({ abortSignal }));
    return metadata?.[ATTEMPT_METADATA_KEY];
  }

  async head(name: string): Promise<BlobHead> {
    const found = await answered((abortSignal) => this.#container.getBlobClient(name).getProperties({ abortSignal }));
    return {
      properties: {
        ...propertiesOf(name, found),
        contentLengthBytes: found.contentLength ?? 0,
        metadata: lowerCaseKeys(found.metadata),
      },
      contentMd5: () => found.contentMD5 && Buffer.from(found.contentMD5).toString('base64'),
    };
  }

  async get(name: string, range: ByteRange | undefined): Promise<OpenedBlob> {
    const found = await answered((abortSignal) =>
      this.#container.getBlobClient(name).download(range?.offsetBytes ?? 0, range?.lengthBytes, {
        abortSignal,
        // A body that breaks off is read again by whoever wants it; the library continues only some of them.
        maxRetryRequests: 0,
      }),
    );
    const properties: BlobProperties = {
      ...propertiesOf(name, found),
      contentLengthBytes: wholeLengthBytes(found.contentRange) ?? found.contentLength ?? 0,
      metadata: lowerCaseKeys(found.metadata),
    };
    const stream = found.readableStreamBody as Readable;
    if (range !== undefined && range.offsetBytes >= properties.contentLengthBytes) {
      // The service refuses this itself; the emulator answers an empty body when the range begins right at the end.
      stream.on('error', () => {}).destroy();
      throw new StorageRefusal(416, 'InvalidRange');
    }
    return { properties, body: bodyOf(stream) };
  }

  async put(name: string, body: Uint8Array, options: BlobWriteOptions): Promise<string> {
    const blobHTTPHeaders: BlobHTTPHeaders = {
      blobContentType: options.contentType,
      // Checked by the service on arrival, and kept: it is how a lost response is resolved.
      blobContentMD5: createHash('md5').update(body).digest(),
    };
    const written = await answered((abortSignal) =>
      this.#container
        .getBlockBlobClient(name)
        .upload(body, body.byteLength, { abortSignal, blobHTTPHeaders, ...writeOptions(options) }),
    );
    return unquoted(written.etag);
  }

  async delete(name: string, etag: string): Promise<void> {
    const conditions = { ifMatch: quoted(etag) };
    await answered((abortSignal) => this.#container.getBlobClient(name).delete({ abortSignal, conditions }));
  }

  async list(prefix: string, options: ListOptions): Promise<BlobPage> {
    return await answered(async (abortSignal) => {
      const pages = this.#container
        .listBlobsFlat({ abortSignal, prefix, includeMetadata: options.includeMetadata ?? false })
        .byPage({
          ...(options.pageSize === undefined ? {} : { maxPageSize: options.pageSize }),
          ...(options.continuation === undefined ? {} : { continuationToken: options.continuation }),
        });
      const page = (await pages.next()).value;
      return {
        blobs: (page?.segment.blobItems ?? []).map((item: BlobItem) => listedBlob(item, options)),
        // An empty marker ends the listing.
        continuation: page?.continuationToken || undefined,
      };
    });
  }

  async stageBlock(name: string, blockId: string, body: Uint8Array): Promise<void> {
    const transactionalContentMD5 = createHash('md5').update(body).digest();
    await answered((abortSignal) =>
      this.#container
        .getBlockBlobClient(name)
        .stageBlock(blockId, body, body.byteLength, { abortSignal, transactionalContentMD5 }),
    );
  }

  async stageBlockFromUrl(name: string, blockId: string, sourceUrl: string, range: ByteRange): Promise<void> {
    await answered((abortSignal) =>
      this.#container
        .getBlockBlobClient(name)
        .stageBlockFromURL(blockId, sourceUrl, range.offsetBytes, range.lengthBytes, { abortSignal }),
    );
  }

  async commitBlocks(name: string, blockIds: readonly string[], options: BlobWriteOptions): Promise<string> {
    const blobHTTPHeaders = { blobContentType: options.contentType };
    const committed = await answered((abortSignal) =>
      this.#container
        .getBlockBlobClient(name)
        .commitBlockList([...blockIds], { abortSignal, blobHTTPHeaders, ...writeOptions(options) }),
    );
    return unquoted(committed.etag);
  }

  async committedBlockIds(name: string): Promise<readonly string[]> {
    const list = await answered((abortSignal) =>
      this.#container.getBlockBlobClient(name).getBlockList('committed', { abortSignal }),
    );
    return (list.committedBlocks ?? []).map((block) => block.name);
  }

  async createAppend(name: string): Promise<string> {
    const conditions = { ifNoneMatch: '*' };
    const created = await answered((abortSignal) =>
      this.#container.getAppendBlobClient(name).create({ abortSignal, conditions }),
    );
    return unquoted(created.etag);
  }

  async append(name: string, bytes: Uint8Array, positionBytes: number, sizeBytesMax: number): Promise<string> {
    const conditions = { appendPosition: positionBytes, maxSize: sizeBytesMax };
    const transactionalContentMD5 = createHash('md5').update(bytes).digest();
    const appended = await answered((abortSignal) =>
      this.#container
        .getAppendBlobClient(name)
        .appendBlock(bytes, bytes.byteLength, { abortSignal, conditions, transactionalContentMD5 }),
    );
    return unquoted(appended.etag);
  }

  async expiringAt(deadline: Date): Promise<BlobRequests> {
    const expiresOn = this.#notAfterDeadline(deadline);
    const query = await this.#clients.signer.container(this.name, expiresOn);
    const url = `${this.#clients.blobs.getContainerClient(this.name).url}?${query}`;
    const container = new ContainerClient(url, this.#clients.anonymousPipeline);
    return new AzureBlobRequests(this.#clients, this.name, { container, deadline: expiresOn });
  }

  async signedUrl(name: string, permission: BlobPermission, expiresAt: Date): Promise<string> {
    const expiresOn = this.#notAfterDeadline(expiresAt);
    const query = await this.#clients.signer.blob(this.name, name, SAS_PERMISSIONS[permission], expiresOn);
    return `${this.#clients.blobs.getContainerClient(this.name).getBlobClient(name).url}?${query}`;
  }

  #notAfterDeadline(date: Date): Date {
    return this.#deadline !== undefined && this.#deadline < date ? this.#deadline : date;
  }
}

function writeOptions(options: BlobWriteOptions): {
  conditions: BlobRequestConditions;
  metadata: Record<string, string>;
  tier?: string;
} {
  const { condition } = options;
  return {
    conditions: 'etag' in condition ? { ifMatch: quoted(condition.etag) } : { ifNoneMatch: '*' },
    metadata: { ...options.metadata },
    ...(options.tier === undefined ? {} : { tier: TIERS[options.tier] }),
  };
}

/** What HEAD, GET and listings call the same. */
interface FoundProperties {
  readonly etag?: string;
  readonly lastModified?: Date;
  readonly contentType?: string;
  readonly accessTier?: string;
  readonly archiveStatus?: string;
}

function propertiesOf(name: string, found: FoundProperties): Omit<BlobProperties, 'contentLengthBytes' | 'metadata'> {
  return {
    name,
    etag: unquoted(found.etag),
    lastModified: found.lastModified ?? new Date(0),
    contentType: found.contentType,
    tier: tierOf(found.accessTier),
    archiveStatus: found.archiveStatus,
  };
}

function listedBlob(item: BlobItem, options: ListOptions): BlobProperties {
  return {
    ...propertiesOf(item.name, item.properties),
    contentLengthBytes: item.properties.contentLength ?? 0,
    metadata: options.includeMetadata === true ? lowerCaseKeys(item.metadata) : undefined,
  };
}

function tierOf(tier: string | undefined): AccessTier | undefined {
  const lowered = tier?.toLowerCase();
  return lowered !== undefined && lowered in TIERS ? (lowered as AccessTier) : undefined;
}

/** A listing keeps the case another client wrote; HEAD lowers it. Lower is what the repository format knows. */
function lowerCaseKeys(metadata: Readonly<Record<string, string>> | undefined): Metadata {
  return Object.fromEntries(Object.entries(metadata ?? {}).map(([key, value]) => [key.toLowerCase(), value]));
}

/** From `bytes 0-9/100`. */
function wholeLengthBytes(contentRange: string | undefined): number | undefined {
  const total = contentRange?.split('/')[1];
  return total === undefined ? undefined : Number(total);
}

/** Headers quote ETags, listings do not; the ports never do. */
function unquoted(etag: string | undefined): string {
  return (etag ?? '').replace(/^"(.*)"$/, '$1');
}

function quoted(etag: string): string {
  return `"${etag}"`;
}
