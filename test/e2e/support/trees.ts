/** Folders to archive, and the comparison of what came back. */

import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

/** Path → hash and modification time of every regular file below a folder; links are followed, as the archive does. */
export async function describeTree(folder: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const target = await stat(path).catch(() => undefined);
    if (target === undefined || !target.isFile()) continue;
    const hash = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    files[relative(folder, path)] = `${hash.slice(0, 16)} ${target.size} ${target.mtime.toISOString()}`;
  }
  return files;
}

/** Bytes that look random and are always the same. */
export function bytesOf(seed: string, length: number): Buffer {
  const blocks: Buffer[] = [];
  for (let index = 0; index * 32 < length; index++) {
    blocks.push(createHash('sha256').update(`${seed}/${index}`).digest());
  }
  return Buffer.concat(blocks).subarray(0, length);
}

export async function writeTree(folder: string, files: Readonly<Record<string, Uint8Array | string>>): Promise<void> {
  for (const [path, body] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), body);
    await utimes(join(folder, path), 1_600_000_000, 1_600_000_000 + path.length);
  }
}

/** What a photo folder of twenty years holds: big and small files, odd names, duplicates, links. */
export async function writeOddTree(folder: string): Promise<void> {
  await writeTree(folder, {
    'empty.txt': '',
    'deep/er/and/deeper/empty.bin': '',
    'small.txt': 'a small file\n',
    'copies/small again.txt': 'a small file\n',
    'one byte below.bin': bytesOf('below', 1024 * 1024 - 1),
    'exactly one MiB.bin': bytesOf('exact', 1024 * 1024),
    'large.bin': bytesOf('large', 5 * 1024 * 1024 + 17),
    'copies/large again.bin': bytesOf('large', 5 * 1024 * 1024 + 17),
    'names/with spaces  .txt': 'spaces',
    'names/ünïcödé – 写真 📷.jpg': 'unicode',
    'names/cafe\u0301.txt': 'decomposed',
    'names/caf\u00e9.txt': 'composed',
    'names/quote\'and"quote.txt': 'quotes',
    'names/-rf.txt': 'dash',
    'names/percent%20&#.txt': 'percent',
    'names/.hidden': 'hidden',
    'names/a.pointer.arius.txt': 'named nearly like a pointer',
    [`names/${'n'.repeat(200)}.txt`]: 'long',
    ...Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`many/${n % 7}/file-${n}.txt`, `number ${n}\n`])),
  });
  await symlink('small.txt', join(folder, 'link to a file'));
  await symlink('copies', join(folder, 'link to a folder'));
  await symlink('nowhere', join(folder, 'broken link'));
  await mkdir(join(folder, 'empty folder'));
}

/** Whether anything but regular files and folders lies below. */
export async function hasLinks(folder: string): Promise<boolean> {
  for (const entry of await readdir(folder, { recursive: true })) {
    if ((await lstat(join(folder, entry))).isSymbolicLink()) return true;
  }
  return false;
}
