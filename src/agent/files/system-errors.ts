/** What the system or the network says went wrong, in as few words as it uses. */

/** `ENOENT`, `EACCES`, …; the message of an error that has no code. */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code ?? (error instanceof Error ? error.message : String(error));
}

/** The innermost message there is: `connect ECONNREFUSED 127.0.0.1:1` helps more than an aggregate of it. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return reasonOf(error.errors[0]);
  }
  return error instanceof Error && error.message !== '' ? error.message : codeOf(error);
}
