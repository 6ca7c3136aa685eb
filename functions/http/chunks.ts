/** Chunks: which are known, and assembling a large one. */

import { route } from '../http-route.ts';
import { accepted } from '../operation-replies.ts';

route('lookup', async (service, { path, body }) => ({ body: await service.lookup.lookup(path.repository, body) }));

route('commitChunk', async (service, { path, body, log }) =>
  accepted(service, log, await service.assembly.request(path.repository, path.hash, body)),
);
