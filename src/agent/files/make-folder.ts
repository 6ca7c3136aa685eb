import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a folder and those above it that are missing; one that is there is left as it is. Node's own recursive `mkdir`
 * tries for ever where a file system answers "not found" to every attempt, as `/proc` does.
 *
 * @throws the system's error, for example EACCES, ENOTDIR, ENOENT
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(path) !== path && !(await isFolder(dirname(path)))) {
      await makeFolder(dirname(path), mode);
      // The folder above is there now, so this ends: with a folder, or with the system's own word.
      await makeFolder(path, mode);
    } else if (code !== 'EEXIST' || !(await isFolder(path))) {
      throw error;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
