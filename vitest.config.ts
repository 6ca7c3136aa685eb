import { defineConfig } from 'vitest/config';
import { isNewEnough } from './bin/node-runtime.mjs';

if (!isNewEnough(process.versions.node)) {
  throw new Error(
    `The tests need the project's own Node, not Node ${process.versions.node}: use "npm test", or put node_modules/.bin first on PATH.`,
  );
}

/** Three suites: pure and memory tests, tests that need Azurite (one in-memory child for all), end to end. */
export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.azurite.test.ts', 'test/e2e/**', '**/node_modules/**'],
          testTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'azurite',
          include: ['test/**/*.azurite.test.ts'],
          exclude: ['test/e2e/**', '**/node_modules/**'],
          globalSetup: ['test/support/azurite-setup.ts'],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
