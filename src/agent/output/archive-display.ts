/** What an archive run shows of itself while it runs. */

import type { OperationInfo } from '../../contract/schemas.ts';
import type { ArchivePhase } from '../archive/archive.ts';
import type { ArchiveCounters } from '../archive/archive-context.ts';
import { formatBytes, formatCount, formatDuration } from './format.ts';
import type { Status } from './output.ts';

export class ArchiveDisplay {
  readonly #counters: ArchiveCounters;
  readonly #sent: { readonly bytesSent: number };
  readonly #startedMs: number;
  #phase: ArchivePhase = 'files';
  #operation: OperationInfo | undefined;

  constructor(counters: ArchiveCounters, sent: { readonly bytesSent: number }, nowMs = performance.now()) {
    this.#counters = counters;
    this.#sent = sent;
    this.#startedMs = nowMs;
  }

  phase(phase: ArchivePhase): void {
    this.#phase = phase;
  }

  operation(operation: OperationInfo): void {
    this.#operation = operation;
  }

  status(nowMs = performance.now()): Status {
    const c = this.#counters;
    const elapsedMs = Math.max(1, nowMs - this.#startedMs);
    const speed = (this.#sent.bytesSent / elapsedMs) * 1000;
    const secondsLeft = this.#secondsLeft(elapsedMs);
    const eta = secondsLeft === undefined ? '' : `, about ${formatDuration(secondsLeft * 1000)} left`;
    const scan = `scan    ${formatCount(c.filesScanned)} files, ${formatBytes(c.bytesScanned)}${c.scanDone ? '' : ' …'}`;
    const hash = `hash    ${formatCount(c.filesHashed)} files, ${formatBytes(c.bytesHashed)}${eta}`;
    const dedup = `dedup   ${formatCount(c.filesNew)} new, ${formatCount(c.filesUnchanged)} known`;
    const upload =
      `upload  ${formatBytes(this.#sent.bytesSent)} sent, ${formatBytes(speed)}/s, ` +
      `${formatCount(c.chunksUploaded)} chunks, ${formatCount(c.filetreesUploaded)} filetrees`;
    const index = this.#index();
    return {
      fields: {
        command: 'archive',
        phase: this.#phase,
        filesScanned: c.filesScanned,
        bytesScanned: c.bytesScanned,
        filesHashed: c.filesHashed,
        bytesHashed: c.bytesHashed,
        filesNew: c.filesNew,
        filesUnchanged: c.filesUnchanged,
        chunksUploaded: c.chunksUploaded,
        bytesUploaded: c.bytesUploaded,
        bytesSent: this.#sent.bytesSent,
        filetreesUploaded: c.filetreesUploaded,
        ...(secondsLeft === undefined ? {} : { secondsLeft: Math.round(secondsLeft) }),
        ...(this.#operation === undefined
          ? {}
          : { operation: { phase: this.#operation.phase, progress: this.#operation.progress } }),
      },
      lines: [scan, hash, dedup, upload, ...(index === undefined ? [] : [index])],
      short:
        index ?? `${formatCount(c.filesHashed)} of ${formatCount(c.filesScanned)} files hashed; ${upload.slice(8)}`,
    };
  }

  /** By the share of the scanned bytes that are hashed, once all are scanned: uploads keep pace through the queues. */
  #secondsLeft(elapsedMs: number): number | undefined {
    const { scanDone, bytesScanned, bytesHashed } = this.#counters;
    if (!scanDone || bytesHashed === 0 || bytesHashed >= bytesScanned) {
      return undefined;
    }
    return ((elapsedMs / bytesHashed) * (bytesScanned - bytesHashed)) / 1000;
  }

  #index(): string | undefined {
    if (this.#operation === undefined) {
      return undefined;
    }
    const { phase, progress } = this.#operation;
    return `index   ${phase}${progress === null ? '' : ` ${progress.done}/${progress.total} ${progress.unit}`}`;
  }
}
