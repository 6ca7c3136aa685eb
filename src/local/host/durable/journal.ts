/**
 * The task hub on disk: an append-only file, one line per transaction, each a JSON array of operations. A line is
 * complete or it never was: history, consumed messages and new work of one step are in one line. kill -9 loses
 * nothing that was written, because the kernel has it; a torn last line is ignored. A damaged line elsewhere stops
 * the start: guessing would lose work silently.
 */

import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { JOURNAL_COMPACT_BYTES, JOURNAL_COMPACT_FACTOR } from '../../../limits.ts';
import type { HubState, Operation } from './hub-state.ts';

const FORMAT = '{"journal":1}';

/** The journal is from another version, or damaged elsewhere than at its end; the host does not start. */
class JournalError extends Error {
  override readonly name = 'JournalError';
}

export class Journal {
  readonly #path: string;
  readonly #state: HubState;
  #file: number;
  #bytes = 0;
  #bytesAfterCompaction = 0;

  private constructor(path: string, state: HubState) {
    this.#path = path;
    this.#state = state;
    this.#file = this.#compact();
  }

  /** Reads what is there into `state`, and starts a fresh, compact file. */
  static open(directory: string, state: HubState): Journal {
    const path = join(directory, 'journal.jsonl');
    if (existsSync(path)) readInto(state, path);
    return new Journal(path, state);
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(lines: readonly string[]): void {
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    writeFully(this.#file, bytes);
    this.#bytes += bytes.byteLength;
    if (this.#bytes > Math.max(JOURNAL_COMPACT_BYTES, JOURNAL_COMPACT_FACTOR * this.#bytesAfterCompaction)) {
      closeSync(this.#file);
      this.#file = this.#compact();
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Written beside, synced, then renamed over: a crash leaves the old journal or the new one, both complete. */
  #compact(): number {
    const temporary = `${this.#path}.new`;
    const file = openSync(temporary, 'w', 0o600);
    writeFully(file, Buffer.from(`${FORMAT}\n`));
    for (const operations of this.#state.snapshot()) writeFully(file, Buffer.from(`${JSON.stringify(operations)}\n`));
    fsyncSync(file);
    renameSync(temporary, this.#path);
    this.#bytes = fstatSync(file).size;
    this.#bytesAfterCompaction = this.#bytes;
    return file;
  }
}

function readInto(state: HubState, path: string): void {
  const lines = readFileSync(path, 'utf8').split('\n');
  const torn = lines.pop();
  if (lines[0] !== FORMAT) {
    if (lines.length === 0 && FORMAT.startsWith(torn ?? '')) return;
    throw new JournalError(`${path} is not a journal of this version. Move it away to start with an empty task hub.`);
  }
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    let operations: Operation[];
    try {
      operations = JSON.parse(line) as Operation[];
    } catch {
      throw new JournalError(`${path} is damaged at line ${index + 1}. Move it away to start with an empty task hub.`);
    }
    for (const operation of operations) state.apply(operation);
  }
}

function writeFully(file: number, bytes: Buffer): void {
  let offset = 0;
  while (offset < bytes.byteLength) offset += writeSync(file, bytes, offset);
}
