/** What a shared access signature allows. The signature itself is not checked: the server knows no keys. */

import { StorageRefusal } from '../../../src/storage/refusal.ts';

/** Undefined: the account's own credential, which may do everything. */
export type BlobAccess = { readonly permissions: string; readonly scope: 'blob' | 'container' } | undefined;

/** Refuses when the URL carries an expired signature. */
export function accessOf(query: URLSearchParams, now: Date): BlobAccess {
  if (!query.has('sig')) {
    return undefined;
  }
  if (!(now.getTime() < Date.parse(query.get('se') ?? ''))) {
    throw new StorageRefusal(403, 'AuthenticationFailed');
  }
  return { permissions: query.get('sp') ?? '', scope: query.get('sr') === 'c' ? 'container' : 'blob' };
}

/** Any of the letters is enough. */
export function requireAccess(access: BlobAccess, anyOf: string): void {
  if (access !== undefined && ![...anyOf].some((letter) => access.permissions.includes(letter))) {
    throw new StorageRefusal(403, 'AuthorizationPermissionMismatch');
  }
}

/** Requests on a container or an account: a blob's signature does not reach them. */
export function requireContainerAccess(access: BlobAccess, anyOf: string): void {
  if (access !== undefined && access.scope !== 'container') {
    throw new StorageRefusal(403, 'AuthorizationFailure');
  }
  requireAccess(access, anyOf);
}
