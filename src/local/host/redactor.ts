/** Takes secrets out of text that is about to be logged: those it was told, and what looks like a key in a URL. */

const KEY_PARAMETERS = /\b(sig|code|AccountKey|SharedAccessSignature)=[^&;\s"']+/gi;
/** Shorter secrets would mask ordinary words; the host's own keys are far longer. */
const SECRET_LENGTH_MIN = 6;

export class Redactor {
  readonly #secrets = new Set<string>();

  add(secret: string): void {
    if (secret.length >= SECRET_LENGTH_MIN) this.#secrets.add(secret);
  }

  redact(text: string): string {
    let redacted = text.replace(KEY_PARAMETERS, '$1=***');
    for (const secret of this.#secrets) redacted = redacted.replaceAll(secret, '***');
    return redacted;
  }
}
