/** The API described by itself. */

import { openApiDocument } from '../../src/contract/openapi.ts';
import { VERSION } from '../../src/version.ts';
import { unservedRoute } from '../http-route.ts';

unservedRoute('openApi', () => openApiDocument(VERSION));
