import { createLogUpdate } from 'log-update';
import type { AriusError } from '../../errors.ts';
import type { Fields, Output, Status, TextStream } from './output.ts';

/** For people: a live display on a terminal, one line every ten seconds elsewhere. */

const LIVE_INTERVAL_MS = 120;
const LOG_INTERVAL_MS = 10_000;

export interface HumanOutputOptions {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly verbose: boolean;
  readonly quiet: boolean;
  readonly progress: boolean;
}

export class HumanOutput implements Output {
  readonly #options: HumanOutputOptions;
  readonly #live: ReturnType<typeof createLogUpdate> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #status: (() => Status) | undefined;

  constructor(options: HumanOutputOptions) {
    this.#options = options;
    if (options.stderr.isTTY === true && options.progress && !options.quiet) {
      this.#live = createLogUpdate(options.stderr as unknown as NodeJS.WritableStream);
    }
  }

  get verbose(): boolean {
    return this.#options.verbose;
  }

  result(line: string, _fields: Fields): void {
    this.#print(this.#options.stdout, line);
  }

  file(line: string, _fields: Fields): void {
    if (this.#options.verbose) {
      this.#print(this.#options.stdout, line);
    }
  }

  warning(message: string, _fields: Fields = {}): void {
    this.#print(this.#options.stderr, `warning: ${message}`);
  }

  remark(message: string): void {
    if (!this.#options.quiet) {
      this.#print(this.#options.stderr, message);
    }
  }

  ready(lines: readonly string[], _fields: Fields): void {
    this.#print(this.#options.stdout, lines.join('\n'));
  }

  summary(lines: readonly string[], _fields: Fields): void {
    if (!this.#options.quiet) {
      this.#print(this.#options.stdout, lines.join('\n'));
    }
  }

  error(error: AriusError): void {
    this.#print(this.#options.stderr, `error ${error.code}: ${oneLine(error.message)} ${oneLine(error.next)}`);
  }

  startStatus(status: () => Status): void {
    if (this.#options.quiet || !this.#options.progress) {
      return;
    }
    this.#status = status;
    this.#timer ??= setInterval(() => this.#show(), this.#live === undefined ? LOG_INTERVAL_MS : LIVE_INTERVAL_MS);
    this.#timer.unref();
  }

  endStatus(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#status = undefined;
    this.#live?.clear();
  }

  #show(): void {
    if (this.#status === undefined) {
      return;
    }
    const { lines, short } = this.#status();
    if (this.#live === undefined) {
      this.#options.stderr.write(`${short}\n`);
    } else {
      this.#live(lines.join('\n'));
    }
  }

  /** The live display gives way to a lasting line, and returns below it. */
  #print(stream: TextStream, text: string): void {
    this.#live?.clear();
    stream.write(`${text}\n`);
    if (this.#live !== undefined) {
      this.#show();
    }
  }
}

/** An error is one line, whatever a cause put into its text. */
export function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim();
}
