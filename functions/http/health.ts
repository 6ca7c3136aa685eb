/** Liveness. Asks nothing of storage: it answers even when the service is not configured. */

import { VERSION } from '../../src/version.ts';
import { unservedRoute } from '../http-route.ts';

unservedRoute('health', () => ({ status: 'ok', version: VERSION, time: new Date().toISOString() }));
