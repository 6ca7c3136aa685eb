/**
 * Signed URLs of the memory adapter, in the form and with the parameters of a blob SAS, so that tests may serve them
 * over HTTP. The signature is real: a URL that was altered is refused.
 */

import { createHmac, randomBytes } from 'node:crypto';
import type { BlobPermission } from '../ports.ts';
import { StorageRefusal } from '../refusal.ts';
import { SAS_PERMISSIONS } from '../sas-permissions.ts';

const ORIGIN = 'http://memory.invalid';

export interface SignedBlob {
  readonly container: string;
  readonly name: string;
  readonly permissions: string;
}

export class UrlSigner {
  readonly #key = randomBytes(32);

  sign(container: string, name: string, permission: BlobPermission, expiresAt: Date): string {
    const url = new URL(`${ORIGIN}/${container}/${name.split('/').map(encodeURIComponent).join('/')}`);
    url.searchParams.set('sp', SAS_PERMISSIONS[permission]);
    url.searchParams.set('se', expiresAt.toISOString());
    url.searchParams.set('sr', 'b');
    url.searchParams.set('sig', this.#signature(url));
    return url.href;
  }

  /** Refuses an altered or expired URL as the service does. */
  verify(signedUrl: string, now: Date): SignedBlob {
    const url = new URL(signedUrl);
    const expiresAt = Date.parse(url.searchParams.get('se') ?? '');
    if (url.searchParams.get('sig') !== this.#signature(url) || !(now.getTime() < expiresAt)) {
      throw new StorageRefusal(403, 'AuthenticationFailed');
    }
    const [, container = '', ...segments] = url.pathname.split('/');
    return {
      container,
      name: segments.map(decodeURIComponent).join('/'),
      permissions: url.searchParams.get('sp') ?? '',
    };
  }

  #signature(url: URL): string {
    const signed = [url.pathname, ...['sp', 'se', 'sr'].map((key) => url.searchParams.get(key))].join('\n');
    return createHmac('sha256', this.#key).update(signed).digest('base64url');
  }
}
