/** Recording what was uploaded: large chunks, and the members of tars. */

import { route } from '../http-route.ts';

route('recordEntries', async (service, { path, body }) => ({
  body: await service.recording.entries(path.repository, body),
}));

route('recordMembers', async (service, { path, body }) => ({
  body: await service.recording.members(path.repository, path.hash, body),
}));
