/** Repositories: create, list, get, adopt. */

import { route } from '../http-route.ts';

route('createRepository', async (service, { body }) => ({ body: await service.repositories.create(body) }));

route('listRepositories', async (service) => ({ body: await service.repositories.list() }));

route('getRepository', async (service, { path }) => ({ body: await service.repositories.get(path.repository) }));

route('adoptRepository', async (service, { path, body }) => ({
  body: await service.repositories.adopt(path.repository, body),
}));
