/**
 * What a flush of one root did: every pending row it merged, by key and ETag, under the shard (with its ETag) that now
 * holds the entry. Settle considers these rows and no others. Each line is a fact by itself, so a manifest of any run of
 * the same flush may stand for another's; only never a part of one: it is committed as a whole.
 *
 * Text, one JSON array a line, in hash order:
 *   ["arius-flush-manifest",1,root]   ["shard",prefix,etag]   ["row",contentHash,etag] …   ["end",rows]
 * A root may have any number of rows: blocks of MANIFEST_BLOCK_BYTES are staged on the way and committed at the end.
 */

import { randomUUID } from 'node:crypto';
import { MANIFEST_BLOCK_BYTES } from '../limits.ts';
import type { PendingRowKey } from '../pending/pending-row.ts';
import type { BlobContainer, BlobWriteOptions, WriteCondition, WriteResult } from '../storage/ports.ts';

export const MANIFEST_KIND = 'arius-flush-manifest';
export const MANIFEST_VERSION = 1;

const CONTENT_TYPE = 'application/x-ndjson';

export function manifestBlobName(repository: string, jobId: string, root: string): string {
  return `${repository}/${jobId}/manifests/${root}`;
}

export interface ManifestSection {
  readonly prefix: string;
  readonly etag: string;
  /** In hash order. */
  readonly rows: readonly PendingRowKey[];
}

/** Runs one request under the claim; the container expires with it. */
type Guard = <T>(request: (staging: BlobContainer) => Promise<T>) => Promise<T>;

export class ManifestWriter {
  readonly #name: string;
  readonly #guard: Guard;
  readonly #blockBytes: number;
  /** Unique to this attempt and of one length, so that a twin's blocks of the same name neither mix nor clash. */
  readonly #attemptId = randomUUID();
  readonly #blockIds: string[] = [];
  #lines: string[] = [];
  #bufferedBytes = 0;
  #rowCount = 0;

  constructor(name: string, root: string, guard: Guard, blockBytes: number = MANIFEST_BLOCK_BYTES) {
    this.#name = name;
    this.#guard = guard;
    this.#blockBytes = blockBytes;
    this.#line([MANIFEST_KIND, MANIFEST_VERSION, root]);
  }

  async add(section: ManifestSection): Promise<void> {
    this.#line(['shard', section.prefix, section.etag]);
    for (const row of section.rows) {
      this.#line(['row', row.contentHash, row.etag]);
    }
    this.#rowCount += section.rows.length;
    if (this.#bufferedBytes >= this.#blockBytes) {
      await this.#stage();
    }
  }

  /** Replaces an earlier round's manifest, or a twin's: each tells the truth, and the later has read more. */
  async commit(): Promise<WriteResult> {
    this.#line(['end', this.#rowCount]);
    if (this.#blockIds.length > 0) {
      await this.#stage();
    }
    const created = await this.#write({ absent: true });
    if (created.outcome === 'written') {
      return created;
    }
    const earlier = await this.#guard((staging) => staging.head(this.#name));
    return await this.#write(earlier === undefined ? { absent: true } : { etag: earlier.etag });
  }

  #write(condition: WriteCondition): Promise<WriteResult> {
    const options: BlobWriteOptions = { condition, contentType: CONTENT_TYPE };
    return this.#guard((staging) =>
      this.#blockIds.length > 0
        ? staging.commitBlocks(this.#name, this.#blockIds, options)
        : staging.write(this.#name, Buffer.from(this.#lines.join('')), options),
    );
  }

  async #stage(): Promise<void> {
    const blockId = Buffer.from(`${this.#attemptId}-${String(this.#blockIds.length).padStart(6, '0')}`).toString(
      'base64',
    );
    const body = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    this.#bufferedBytes = 0;
    await this.#guard((staging) => staging.stageBlock(this.#name, blockId, body));
    this.#blockIds.push(blockId);
  }

  #line(fields: readonly (string | number)[]): void {
    const line = `${JSON.stringify(fields)}\n`;
    this.#lines.push(line);
    this.#bufferedBytes += Buffer.byteLength(line);
  }
}
