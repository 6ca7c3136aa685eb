/** Paths below the archived folder: with slashes, and empty for the folder itself. */

export function joinPath(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`;
}

/** Where a path is on this machine. `root` is absolute, and may be `/`. */
export function localPathOf(root: string, path: string): string {
  return path === '' ? root : `${root.endsWith('/') ? root.slice(0, -1) : root}/${path}`;
}
