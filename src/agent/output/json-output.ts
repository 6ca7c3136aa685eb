import type { AriusError } from '../../errors.ts';
import { oneLine } from './human-output.ts';
import type { Fields, Output, Status, TextStream } from './output.ts';

/** For programs: one JSON object a line on stdout, each with its `messageType`; nothing on stderr. */

const STATUS_INTERVAL_MS = 1000;

export class JsonOutput implements Output {
  readonly verbose: boolean;
  readonly #stdout: TextStream;
  readonly #progress: boolean;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { stdout: TextStream; verbose: boolean; quiet: boolean; progress: boolean }) {
    this.#stdout = options.stdout;
    this.verbose = options.verbose;
    this.#progress = options.progress && !options.quiet;
  }

  result(_line: string, fields: Fields): void {
    this.#write('file', fields);
  }

  file(_line: string, fields: Fields): void {
    if (this.verbose) {
      this.#write('file', fields);
    }
  }

  warning(message: string, fields: Fields = {}): void {
    this.#write('warning', { message, ...fields });
  }

  remark(_message: string): void {
    // For people only.
  }

  ready(_lines: readonly string[], fields: Fields): void {
    this.#write('ready', fields);
  }

  summary(_lines: readonly string[], fields: Fields): void {
    this.#write('summary', fields);
  }

  error(error: AriusError): void {
    this.#write('error', { code: error.code, message: oneLine(error.message), next: oneLine(error.next) });
  }

  startStatus(status: () => Status): void {
    if (this.#progress) {
      this.#timer ??= setInterval(() => this.#write('status', status().fields), STATUS_INTERVAL_MS);
      this.#timer.unref();
    }
  }

  endStatus(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #write(messageType: string, fields: Fields): void {
    this.#stdout.write(`${JSON.stringify({ messageType, ...fields })}\n`);
  }
}
