/** Occurs when a conditional request met another state than was read: the root is listed and merged again. */
export class ShardConflict extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'ShardConflict';
  }
}

/** Occurs when a claim ran out or was taken over: nothing may be written until the root is claimed again. */
export class ClaimLost extends Error {
  constructor(root: string, options?: { cause?: unknown }) {
    super(`The claim on ${root} has run out`, options);
    this.name = 'ClaimLost';
  }
}
