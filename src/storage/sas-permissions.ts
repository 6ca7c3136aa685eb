/** What a signature allows, in the letters of a shared access signature (SAS). */

import type { BlobPermission } from './ports.ts';

/**
 * `create` is `c` alone: one Put Blob of a name that is free; it cannot overwrite, read, list or stage blocks. `write`
 * is for staging names: blocks need `w`, a first write needs `c`.
 */
export const SAS_PERMISSIONS: Readonly<Record<BlobPermission, string>> = { create: 'c', read: 'r', write: 'cw' };

/** Of `expiringAt`: read, add, create, write, delete, list, all inside one container. */
export const CONTAINER_SAS_PERMISSIONS = 'racwdl';
