/**
 * The blob ports over single requests. Invariant: `conflict` is answered only when what is there was not written by
 * this very call, and `written` only when it was (or is byte for byte the same).
 */

import { createHash, randomUUID } from 'node:crypto';
import { AriusError } from '../../errors.ts';
import { LIST_PAGE_BLOBS_MAX } from '../../limits.ts';
import { type AttemptTiming, attemptRequest } from '../attempts.ts';
import type {
  AppendBlobs,
  BlobContainer,
  BlobPage,
  BlobPermission,
  BlobProperties,
  BlobWriteOptions,
  ByteRange,
  DeleteResult,
  ListOptions,
  Metadata,
  OpenedBlob,
  ReadBlob,
  WriteResult,
} from '../ports.ts';
import { isConditionFailure, isMissing, StorageRefusal } from '../refusal.ts';
import type { BlobHead, BlobRequests } from '../requests.ts';
import { collect, discard, readableBody } from './bodies.ts';
import { checkBlobName, checkMetadata } from './input-checks.ts';

const CONFLICT: WriteResult = { outcome: 'conflict' };

export class ResolvedBlobContainer implements BlobContainer, AppendBlobs {
  readonly #requests: BlobRequests;
  readonly #timing: AttemptTiming;

  constructor(requests: BlobRequests, timing: AttemptTiming) {
    this.#requests = requests;
    this.#timing = timing;
  }

  get name(): string {
    return this.#requests.name;
  }

  async createIfMissing(): Promise<boolean> {
    const attemptId = randomUUID();
    return await this.#attempt('create container', '', async (mayBeApplied) => {
      try {
        await this.#requests.createContainer(attemptId);
        return true;
      } catch (error) {
        if (!(error instanceof StorageRefusal && error.code === 'ContainerAlreadyExists')) {
          throw error;
        }
        return mayBeApplied && (await this.#requests.headContainer()) === attemptId;
      }
    });
  }

  async exists(): Promise<boolean> {
    return await this.#attempt('look for container', '', async () => {
      const found = await orMissing(this.#requests.headContainer().then(() => true));
      return found ?? false;
    });
  }

  async head(name: string): Promise<BlobProperties | undefined> {
    checkBlobName(name);
    const head = await this.#attempt('head', name, () => orMissing(this.#requests.head(name)));
    return head?.properties;
  }

  async read(name: string, bytesMax: number): Promise<ReadBlob | undefined> {
    checkBlobName(name);
    return await this.#attempt('read', name, async () => {
      const opened = await orMissing(this.#requests.get(name, undefined));
      if (opened === undefined) {
        return undefined;
      }
      const { contentLengthBytes, etag } = opened.properties;
      if (contentLengthBytes > bytesMax) {
        await discard(opened.body);
        throw new AriusError(
          'blob-corrupt',
          `${this.name}/${name} has ${contentLengthBytes} bytes, more than the ${bytesMax} such a blob may have`,
          'Look at the blob: it was not written by a client of this format.',
        );
      }
      return { bytes: await collect(opened.body, contentLengthBytes), etag };
    });
  }

  async openRead(name: string, range?: ByteRange): Promise<OpenedBlob | undefined> {
    checkBlobName(name);
    const opened = await this.#attempt('read', name, () => orMissing(this.#requests.get(name, range)));
    return opened && { ...opened, body: readableBody(opened.body, `read ${this.name}/${name}`) };
  }

  async write(name: string, body: Uint8Array, options: BlobWriteOptions): Promise<WriteResult> {
    checkBlobName(name);
    checkMetadata(options.metadata);
    return await this.#conditionalWrite(
      'write',
      name,
      () => this.#requests.put(name, body, options),
      (head) =>
        head.properties.contentLengthBytes === body.byteLength &&
        sameMetadata(head.properties.metadata, options.metadata) &&
        head.contentMd5() === createHash('md5').update(body).digest('base64'),
    );
  }

  async delete(name: string, condition: { readonly etag: string }): Promise<DeleteResult> {
    checkBlobName(name);
    return await this.#attempt('delete', name, async (mayBeApplied) => {
      try {
        await this.#requests.delete(name, condition.etag);
        return 'deleted';
      } catch (error) {
        if (isMissing(error)) {
          return mayBeApplied ? 'deleted' : 'missing';
        }
        if (isConditionFailure(error)) {
          return await this.#missingOrChanged(name, mayBeApplied);
        }
        throw error;
      }
    });
  }

  async listPage(prefix: string, options: ListOptions = {}): Promise<BlobPage> {
    const pageSize = Math.min(options.pageSize ?? LIST_PAGE_BLOBS_MAX, LIST_PAGE_BLOBS_MAX);
    return await this.#attempt('list', prefix, () => this.#requests.list(prefix, { ...options, pageSize }));
  }

  async stageBlock(name: string, blockId: string, body: Uint8Array): Promise<void> {
    checkBlobName(name);
    // Staging the same block again replaces it with the same bytes: safe to repeat.
    await this.#attempt('stage a block of', name, () => this.#requests.stageBlock(name, blockId, body));
  }

  async stageBlockFromUrl(name: string, blockId: string, sourceUrl: string, range: ByteRange): Promise<void> {
    checkBlobName(name);
    await this.#attempt('stage a block of', name, () =>
      this.#requests.stageBlockFromUrl(name, blockId, sourceUrl, range),
    );
  }

  async commitBlocks(name: string, blockIds: readonly string[], options: BlobWriteOptions): Promise<WriteResult> {
    checkBlobName(name);
    checkMetadata(options.metadata);
    return await this.#conditionalWrite(
      'commit',
      name,
      () => this.#requests.commitBlocks(name, blockIds, options),
      async (head) => {
        if (!sameMetadata(head.properties.metadata, options.metadata)) {
          return false;
        }
        // A blob made of blocks has no MD5 of its own; its block ids, unique per attempt, are as good.
        const committed = await this.#requests.committedBlockIds(name);
        return committed.length === blockIds.length && committed.every((id, index) => id === blockIds[index]);
      },
      'InvalidBlockList',
    );
  }

  async createAppend(name: string): Promise<WriteResult> {
    checkBlobName(name);
    return await this.#conditionalWrite(
      'create',
      name,
      () => this.#requests.createAppend(name),
      (head) => head.properties.contentLengthBytes === 0,
    );
  }

  async append(name: string, bytes: Uint8Array, positionBytes: number, sizeBytesMax: number): Promise<WriteResult> {
    checkBlobName(name);
    return await this.#conditionalWrite(
      'append to',
      name,
      () => this.#requests.append(name, bytes, positionBytes, sizeBytesMax),
      async (head) => {
        if (head.properties.contentLengthBytes < positionBytes + bytes.byteLength) {
          return false;
        }
        const range = { offsetBytes: positionBytes, lengthBytes: bytes.byteLength };
        const opened = await this.#requests.get(name, range);
        return Buffer.from(await collect(opened.body, bytes.byteLength)).equals(bytes);
      },
    );
  }

  async expiringAt(deadline: Date): Promise<BlobContainer> {
    const requests = await this.#attempt('sign for', '', () => this.#requests.expiringAt(deadline));
    return new ResolvedBlobContainer(requests, this.#timing);
  }

  async signedUrl(name: string, permission: BlobPermission, expiresAt: Date): Promise<string> {
    checkBlobName(name);
    return await this.#attempt('sign', name, () => this.#requests.signedUrl(name, permission, expiresAt));
  }

  /**
   * `isOurs` decides, from what is there now, whether an unanswered earlier attempt was this write. `repeatCode`: a
   * refusal that only a repeated request can meet (the blocks are gone because the first attempt used them).
   */
  async #conditionalWrite(
    verb: string,
    name: string,
    request: () => Promise<string>,
    isOurs: (head: BlobHead) => boolean | Promise<boolean>,
    repeatCode?: string,
  ): Promise<WriteResult> {
    return await this.#attempt(verb, name, async (mayBeApplied) => {
      try {
        return { outcome: 'written', etag: await request() };
      } catch (error) {
        const repeated = mayBeApplied && error instanceof StorageRefusal && error.code === repeatCode;
        if (!isConditionFailure(error) && !repeated) {
          throw error;
        }
        if (!mayBeApplied) {
          return CONFLICT;
        }
        const head = await orMissing(this.#requests.head(name));
        if (head !== undefined && (await isOurs(head))) {
          return { outcome: 'written', etag: head.properties.etag };
        }
        if (repeated) {
          throw error;
        }
        return CONFLICT;
      }
    });
  }

  /** 412 is also the answer for a blob that is gone: only a look at it tells the two apart. */
  async #missingOrChanged(name: string, mayBeApplied: boolean): Promise<DeleteResult> {
    if ((await orMissing(this.#requests.head(name))) !== undefined) {
      return 'changed';
    }
    return mayBeApplied ? 'deleted' : 'missing';
  }

  async #attempt<T>(verb: string, name: string, once: (mayBeApplied: boolean) => Promise<T>): Promise<T> {
    return await attemptRequest(this.#timing, `${verb} ${this.name}${name === '' ? '' : `/${name}`}`, once);
  }
}

async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) {
      return undefined;
    }
    throw error;
  }
}

function sameMetadata(found: Metadata | undefined, wanted: Metadata | undefined): boolean {
  const foundEntries = Object.entries(found ?? {});
  return (
    foundEntries.length === Object.keys(wanted ?? {}).length &&
    foundEntries.every(([key, value]) => wanted?.[key] === value)
  );
}
