/** Signatures for single blobs, and for staging a large body. */

import { route } from '../http-route.ts';

route('grants', async (service, { path, body }) => ({ body: await service.grants.grant(path.repository, body) }));

route('stagingGrant', async (service, { path, body }) => ({
  body: await service.grants.grantStaging(path.repository, body),
}));
