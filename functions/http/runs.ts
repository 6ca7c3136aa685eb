/** Runs: start, get, complete. */

import { route } from '../http-route.ts';
import { accepted } from '../operation-replies.ts';

route('startRun', async (service, { path, body }) => ({ body: await service.runs.start(path.repository, body) }));

route('getRun', async (service, { path }) => ({ body: await service.runs.get(path.repository, path.runId) }));

route('completeRun', async (service, { path, body, log }) =>
  accepted(service, log, await service.runs.complete(path.repository, path.runId, body)),
);
