/**
 * Who may import whom (architecture: imports point downwards only). The one table behind both fences: the linter's
 * (`biome.json`) while one writes, and the test over the real import graph, which also sees what a pattern cannot.
 */

export interface Layer {
  readonly folder: string;
  /** Other folders of `src` it may import; `limits.ts` and `errors.ts` are open to all. */
  readonly mayImport: readonly string[];
  /** Azure packages and those of the Functions runtime; all others of package.json are open to all. */
  readonly azurePackages: readonly string[];
}

const CORE_BASE = ['hashing', 'codec', 'storage'];

export const LAYERS: readonly Layer[] = [
  { folder: 'src/hashing', mayImport: [], azurePackages: [] },
  { folder: 'src/codec', mayImport: ['hashing'], azurePackages: [] },
  { folder: 'src/storage', mayImport: [], azurePackages: [] },
  {
    folder: 'src/storage/azure',
    mayImport: ['storage'],
    azurePackages: ['@azure/storage-blob', '@azure/storage-queue', '@azure/data-tables', '@azure/core-*'],
  },
  { folder: 'src/repository', mayImport: CORE_BASE, azurePackages: [] },
  { folder: 'src/pending', mayImport: [...CORE_BASE, 'repository'], azurePackages: [] },
  { folder: 'src/records', mayImport: CORE_BASE, azurePackages: [] },
  { folder: 'src/chunk-index', mayImport: [...CORE_BASE, 'repository', 'pending'], azurePackages: [] },
  { folder: 'src/contract', mayImport: [], azurePackages: [] },
  {
    folder: 'src/service',
    mayImport: [...CORE_BASE, 'repository', 'pending', 'records', 'chunk-index', 'contract'],
    azurePackages: ['@azure/identity'],
  },
  { folder: 'src/agent', mayImport: ['hashing', 'codec', 'repository', 'contract'], azurePackages: [] },
  {
    folder: 'src/local',
    mayImport: [...CORE_BASE, 'repository', 'pending', 'records', 'chunk-index', 'contract', 'service', 'agent'],
    azurePackages: ['@azure/functions', 'durable-functions', '@azure/storage-queue'],
  },
  {
    folder: 'functions',
    mayImport: [...CORE_BASE, 'repository', 'pending', 'records', 'chunk-index', 'contract', 'service'],
    azurePackages: ['@azure/functions', 'durable-functions', '@azure/identity'],
  },
];

/** Folders of `src` in which time, chance and settings come from outside, so that a test can decide them. */
export const NO_CLOCK_FOLDERS = ['src/hashing', 'src/codec', 'src/repository', 'src/pending', 'src/chunk-index'];

/** What those folders do not use either: they reach the world through ports alone. */
export const IO_MODULES = [
  'child_process',
  'dgram',
  'fs',
  'fs/promises',
  'http',
  'http2',
  'https',
  'net',
  'os',
  'process',
  'sqlite',
];

/** The files of a folder that its users may import, where that is not all of them. */
export const DOORS: Readonly<Record<string, readonly string[]>> = {
  'src/chunk-index': ['src/chunk-index/chunk-index.ts'],
};

/** The folder's layer: of two that hold the file, the deeper. */
export function layerOf(path: string): Layer | undefined {
  return LAYERS.filter(({ folder }) => path.startsWith(`${folder}/`)).sort(
    (a, b) => b.folder.length - a.folder.length,
  )[0];
}

/** The part of a folder's path that import specifiers show: `src/chunk-index` → `chunk-index`. */
function shortName(folder: string): string {
  return folder.replace(/^src\//, '');
}

/** The same table as the linter's configuration: gitignore-like patterns over what import specifiers show. */
export function linterFences(): { overrides: unknown[] } {
  const overrides = LAYERS.map(({ folder, mayImport, azurePackages }) => {
    const own = shortName(folder);
    const forbidden = LAYERS.map((layer) => shortName(layer.folder)).filter(
      (name) => !name.includes('/') && name !== own.split('/')[0] && !mayImport.includes(name),
    );
    const doors = Object.entries(DOORS).filter(([name]) => mayImport.includes(shortName(name)));
    const group = [
      ...forbidden.map((name) => `**/${name}/**`),
      ...doors.flatMap(([name, files]) => [
        `**/${shortName(name)}/**`,
        ...files.map((file) => `!**/${shortName(file)}`),
      ]),
      ...['@azure/**', 'durable-functions', ...azurePackages.map((name) => `!${name}`)],
    ];
    const message = `${folder} may not import this; who may import whom is in test/project/layers.ts.`;
    const noRestrictedImports = { level: 'error', options: { patterns: [{ group, message }] } };
    return { includes: [`${folder}/**`], linter: { rules: { style: { noRestrictedImports } } } };
  });
  return { overrides };
}
