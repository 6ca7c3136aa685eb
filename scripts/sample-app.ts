/** `node scripts/sample-app.ts <folder>`: the conformance suite's sample app as JavaScript, for Core Tools or Azure. */

import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SAMPLE_APP = fileURLToPath(new URL('../test/conformance/host/sample-app/', import.meta.url));
const [target] = process.argv.slice(2);

if (target === undefined) {
  console.error('Usage: node scripts/sample-app.ts <folder>');
  process.exit(2);
}

for (const entry of readdirSync(SAMPLE_APP, { recursive: true, encoding: 'utf8' })) {
  const from = join(SAMPLE_APP, entry);
  const to = join(target, entry);
  mkdirSync(dirname(to), { recursive: true });
  if (entry.endsWith('.ts')) {
    const code = stripTypeScriptTypes(readFileSync(from, 'utf8')).replaceAll(/(from '\.{1,2}\/[^']+)\.ts'/g, "$1.js'");
    writeFileSync(to.replace(/\.ts$/, '.js'), code);
  } else if (basename(entry) === 'package.json') {
    writeFileSync(to, readFileSync(from, 'utf8').replace('functions/*.ts', 'functions/*.js'));
  } else if (basename(entry) === 'local.settings.sample.json') {
    copyFileSync(from, to.replace('.sample', ''));
  } else if (entry.endsWith('.json')) {
    copyFileSync(from, to);
  }
}
console.error(`Written to ${target}. Next: npm install there, then func start.`);
