/** Snapshots: list, get. */

import { route } from '../http-route.ts';

route('listSnapshots', async (service, { path, query }) => ({
  body: await service.snapshots.list(path.repository, {
    source: query.get('source') ?? undefined,
    continuation: query.get('continuation') ?? undefined,
  }),
}));

route('getSnapshot', async (service, { path }) => ({ body: await service.snapshots.get(path.repository, path.name) }));
