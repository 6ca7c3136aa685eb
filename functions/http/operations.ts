/** Long-running operations: how far they are. */

import { route } from '../http-route.ts';
import { pollingHeaders } from '../operation-replies.ts';

route('getOperation', async (service, { path }) => {
  const body = await service.operations.get(path.repository, path.operationId);
  return { body, headers: pollingHeaders(body) };
});
