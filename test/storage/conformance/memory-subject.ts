import { BlobBody } from '../../../src/storage/memory/blob-body.ts';
import type { StorageRequest } from '../../../src/storage/memory/gate.ts';
import { MemoryStorage } from '../../../src/storage/memory/memory-storage.ts';
import { StorageRefusal, StorageUnanswered } from '../../../src/storage/refusal.ts';
import { handleBlob } from '../../support/fast-storage/blob-rest.ts';
import type { RestRequest } from '../../support/fast-storage/rest.ts';
import type { ConformanceSubject, PlainRequest } from './subject.ts';

const READING_KINDS: ReadonlySet<string> = new Set([
  'container-head',
  'blob-head',
  'blob-read',
  'block-list',
  'row-read',
]);

export async function memorySubject(): Promise<ConformanceSubject> {
  const storage = new MemoryStorage();
  let loseAt: StorageRequest['phase'] | undefined;
  let lost = 0;
  storage.onRequest = (request) => {
    if (request.phase === loseAt && !READING_KINDS.has(request.kind)) {
      loseAt = undefined;
      lost += 1;
      throw new StorageUnanswered('lost by the test');
    }
  };
  return {
    storage,
    lossy: storage,
    loss: {
      loseNextRequest: () => {
        loseAt = 'before';
      },
      loseNextResponse: () => {
        loseAt = 'after';
      },
      lost: () => lost,
    },
    plainRequest: async (url, request) => plainRequest(storage, url, request),
    stop: async () => {},
  };
}

/** Serves a signed URL of the memory adapter as the blob service would. */
function plainRequest(storage: MemoryStorage, signedUrl: string, request: PlainRequest): number {
  const url = new URL(signedUrl);
  try {
    // The parameters that are added to a request are not part of what was signed.
    const signed = storage.signer.verify(signedUrl, storage.account.now());
    const rest: RestRequest = {
      method: request.method,
      path: url.pathname.split('/').slice(1).map(decodeURIComponent),
      query: url.searchParams,
      headers: Object.fromEntries(
        Object.entries(request.headers ?? {}).map(([key, value]) => [key.toLowerCase(), value]),
      ),
    };
    const sourceRequest = (): never => {
      throw new Error('Not used: nothing is copied by plain requests');
    };
    const access = { permissions: signed.permissions, scope: 'blob' as const };
    const body = BlobBody.copyOf(request.body ?? new Uint8Array(0));
    return handleBlob({ account: storage.account, sourceRequest }, rest, access, body).status;
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return error.status;
    }
    throw error;
  }
}
