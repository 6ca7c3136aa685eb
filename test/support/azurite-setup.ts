/**
 * One Azurite in memory for the whole suite; tests keep apart by the names of their containers, tables and queues. A test
 * that runs a host of the function app starts one of its own: the app's names are fixed.
 */

import type { TestProject } from 'vitest/node';
import { startAzurite } from '../../src/local/azurite.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    azuriteConnectionString: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const azurite = await startAzurite({ directory: undefined });
  project.provide('azuriteConnectionString', azurite.connectionString);
  return () => azurite.stop();
}
