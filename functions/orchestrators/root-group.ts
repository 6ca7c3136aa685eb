/** Registers the sub-orchestration that flushes, or settles, up to 16 roots. */

import * as df from 'durable-functions';
import { ORCHESTRATOR } from '../orchestration.ts';
import { rootGroup } from '../root-groups.ts';

df.app.orchestration(ORCHESTRATOR.rootGroup, rootGroup);
