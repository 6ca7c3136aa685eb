/** The version of the index a reader may trust what it knows at: it moves with every publication and every settle. */

export interface IndexVersion {
  /** The newest snapshot's name; null in a repository without one. */
  readonly epoch: string | null;
  readonly layoutVersion: number;
}

export interface IndexVersionSource {
  read(): Promise<IndexVersion>;
}

export function isSameVersion(left: IndexVersion, right: IndexVersion): boolean {
  return left.epoch === right.epoch && left.layoutVersion === right.layoutVersion;
}
