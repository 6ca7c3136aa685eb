/**
 * Partition keys of the pending table: `{repository}_{root}`. The separator is an underscore, which no repository name
 * holds: with a hyphen the range `a-00`…`a-ff` of repository `a` would also hold rows of one named `a-00`.
 */

const ROOT_TEXT = /^[0-9a-f]{2}$/;

export function partitionOf(repository: string, root: string): string {
  return `${repository}_${root}`;
}

/** Both bounds are inclusive. */
export function partitionRange(repository: string): { readonly partitionFrom: string; readonly partitionTo: string } {
  return { partitionFrom: partitionOf(repository, '00'), partitionTo: partitionOf(repository, 'ff') };
}

/** Undefined for a key that is not a root's partition. */
export function rootOfPartition(repository: string, partitionKey: string): string | undefined {
  const root = partitionKey.slice(repository.length + 1);
  return partitionKey === partitionOf(repository, root) && ROOT_TEXT.test(root) ? root : undefined;
}

/** The 256 roots, in order. */
export function allRoots(): string[] {
  return Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'));
}
