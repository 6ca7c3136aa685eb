/**
 * The error catalogue: one code per condition a user can meet, with the HTTP status the service answers, the exit code
 * the agent ends with, and the next step. Codes are stable: scripts may match them.
 */

export const ERROR_CATALOGUE = {
  'bad-request': { status: 400, exitCode: 2, title: 'The request is not valid' },
  usage: { status: 400, exitCode: 2, title: 'Wrong usage' },
  'not-allowed': { status: 403, exitCode: 13, title: 'Not allowed' },
  unauthorized: { status: 401, exitCode: 13, title: 'The key or token is missing or wrong' },
  'repository-not-found': { status: 404, exitCode: 10, title: 'No such repository' },
  'repository-exists': { status: 409, exitCode: 1, title: 'The repository exists already' },
  'snapshot-not-found': { status: 404, exitCode: 10, title: 'No such snapshot' },
  'snapshot-ambiguous': { status: 409, exitCode: 2, title: 'Several sources have snapshots' },
  'run-not-found': { status: 404, exitCode: 1, title: 'No such run' },
  'run-conflict': { status: 409, exitCode: 1, title: 'The run was started or completed with other facts' },
  'operation-not-found': { status: 404, exitCode: 1, title: 'No such operation' },
  'not-found': { status: 404, exitCode: 1, title: 'Nothing is here' },
  'service-unreachable': { status: 503, exitCode: 11, title: 'The service cannot be reached' },
  'passphrase-needed': { status: 409, exitCode: 12, title: 'The repository is sealed: a passphrase is needed' },
  'passphrase-wrong': { status: 409, exitCode: 12, title: 'The passphrase does not open this repository' },
  'passphrase-missing-in-service': {
    status: 409,
    exitCode: 12,
    title: 'The service has no passphrase for this sealed repository',
  },
  'chunk-index-corrupt': { status: 409, exitCode: 14, title: 'A shard of the chunk index cannot be read' },
  'repair-incomplete': { status: 409, exitCode: 14, title: 'A repair of the chunk index is not finished' },
  'pending-not-flushed': { status: 503, exitCode: 4, title: 'Pending entries could not be flushed yet' },
  busy: { status: 503, exitCode: 4, title: 'The index is changing; ask again' },
  'not-finished': { status: 409, exitCode: 4, title: 'Not finished yet' },
  'chunk-type-conflict': { status: 409, exitCode: 1, title: 'Another kind of chunk is stored under this name' },
  'snapshot-incomplete': { status: 409, exitCode: 1, title: 'The snapshot would not resolve' },
  'blob-corrupt': { status: 409, exitCode: 1, title: 'A stored blob cannot be decoded' },
  'tier-not-supported': { status: 400, exitCode: 2, title: 'This tier is not supported yet' },
  'chunk-archived': {
    status: 409,
    exitCode: 4,
    title: 'The chunk is in the archive tier and must be rehydrated first',
  },
  'folder-unreadable': { status: 400, exitCode: 1, title: 'The folder cannot be read' },
  'local-state-unusable': { status: 500, exitCode: 1, title: 'The embedded service cannot keep its state there' },
  'disk-full': { status: 507, exitCode: 1, title: 'No space left on the disk' },
  'partly-done': { status: 200, exitCode: 3, title: 'Done in part' },
  interrupted: { status: 499, exitCode: 130, title: 'Interrupted' },
  'storage-failed': { status: 503, exitCode: 1, title: 'The storage did not answer as it should' },
  internal: { status: 500, exitCode: 1, title: 'Something went wrong in the program' },
} as const satisfies Record<string, { status: number; exitCode: number; title: string }>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** RFC 9457 problem details, as the service answers them. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly next: string;
  readonly retryAfterSeconds?: number;
}

/**
 * The one error class that crosses module borders. `detail` says what happened and to what; `next` says what to do.
 * An error that is not an AriusError is a defect: it is logged, and the user sees `internal`.
 */
export class AriusError extends Error {
  readonly code: ErrorCode;
  readonly next: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    detail: string,
    next: string,
    options: { cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AriusError';
    this.code = code;
    this.next = next;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }

  get exitCode(): number {
    return ERROR_CATALOGUE[this.code].exitCode;
  }

  toProblem(): Problem {
    return {
      type: `urn:arius:problem:${this.code}`,
      title: ERROR_CATALOGUE[this.code].title,
      status: this.status,
      code: this.code,
      detail: this.message,
      next: this.next,
      ...(this.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: this.retryAfterSeconds }),
    };
  }

  /** The other way: what an agent makes of a problem it received. An unknown code (a newer service) becomes `internal`. */
  static fromProblem(problem: Problem): AriusError {
    const code = problem.code in ERROR_CATALOGUE ? (problem.code as ErrorCode) : 'internal';
    return new AriusError(code, problem.detail, problem.next, {
      ...(problem.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: problem.retryAfterSeconds }),
    });
  }
}
