/**
 * One JSON line per log record on stderr. Secrets given to the host, and what looks like a key or a signature in a
 * URL or connection string, never appear in a record.
 */

import { Redactor } from './redactor.ts';

const LEVELS = ['trace', 'debug', 'information', 'warning', 'error', 'critical', 'none'];

export interface LogDetails {
  readonly category?: string;
  readonly function?: string;
  readonly invocationId?: string;
  readonly instanceId?: string;
}

export class HostLog {
  readonly #redactor = new Redactor();
  readonly #minimumLevel: number;
  readonly #write: (line: string) => void;

  constructor(options: { minimumLevel?: string; write?: (line: string) => void } = {}) {
    this.#minimumLevel = LEVELS.indexOf(options.minimumLevel ?? 'information');
    this.#write = options.write ?? ((line): void => void process.stderr.write(line));
  }

  addSecret(secret: string): void {
    this.#redactor.add(secret);
  }

  write(level: string, message: string, details: LogDetails = {}): void {
    if (LEVELS.indexOf(level) < this.#minimumLevel) return;
    const record = { time: new Date().toISOString(), level, ...details, message: this.#redactor.redact(message) };
    this.#write(`${JSON.stringify(record)}\n`);
  }

  info(message: string, details?: LogDetails): void {
    this.write('information', message, details);
  }

  warn(message: string, details?: LogDetails): void {
    this.write('warning', message, details);
  }

  error(message: string, error: unknown, details?: LogDetails): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.write('error', `${message}: ${text}`, details);
  }
}
