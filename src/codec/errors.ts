/**
 * Occurs when a stored body is not exactly one complete, intact body of the format: truncated, bytes behind its end, a
 * checksum or tag that does not hold, larger than allowed, or of an unknown kind. Never a shorter result instead.
 */
export class BodyCorruptError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BodyCorruptError';
  }
}

/**
 * Occurs when a body cannot be opened and the passphrase is the likely reason: `needed` when a sealed body is read
 * without one; `wrong` when the first thing the passphrase opens does not hold. Damage to the first block of a body
 * looks the same as a wrong passphrase; so whoever has proven the passphrase elsewhere may treat this as what it also is,
 * a BodyCorruptError.
 */
export class PassphraseError extends BodyCorruptError {
  readonly reason: 'needed' | 'wrong';

  constructor(reason: 'needed' | 'wrong', message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'PassphraseError';
    this.reason = reason;
  }
}
