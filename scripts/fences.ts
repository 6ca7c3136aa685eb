/** Writes the linter's import fences from the table of layers. A test fails while they differ. */

import { writeFileSync } from 'node:fs';
import { linterFences } from '../test/project/layers.ts';

writeFileSync(new URL('../biome.fences.json', import.meta.url), JSON.stringify(linterFences()));
