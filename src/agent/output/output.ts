/**
 * How a command speaks: results on stdout, progress and remarks on stderr. Two ways, for people and for programs; the
 * commands do not know which.
 */

import type { AriusError } from '../../errors.ts';

export interface TextStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

export type Fields = Readonly<Record<string, unknown>>;

/** What a long command is doing right now. */
export interface Status {
  readonly fields: Fields;
  /** The live display of a terminal. */
  readonly lines: readonly string[];
  /** The same in one line, for a log. */
  readonly short: string;
}

export interface Output {
  readonly verbose: boolean;
  /** One line of what was asked for. */
  result(line: string, fields: Fields): void;
  /** About one file; only when asked for (`-v`). */
  file(line: string, fields: Fields): void;
  /** Something was left out or went wrong, and the command goes on. */
  warning(message: string, fields?: Fields): void;
  /** A remark for people only. */
  remark(message: string): void;
  /** The service or the command is ready. */
  ready(lines: readonly string[], fields: Fields): void;
  summary(lines: readonly string[], fields: Fields): void;
  /** The last line of a command that did not fully succeed. */
  error(error: AriusError): void;
  /** Shows the status from time to time until `endStatus`. */
  startStatus(status: () => Status): void;
  endStatus(): void;
}
