/** The members of tars that are being packed or uploaded: a tar of tiny files has thousands, so they are on disk. */

import type { ContentHash } from '../../hashing/hashes.ts';
import { bytesOf, hexOf } from '../files/hash-bytes.ts';
import type { ScratchDatabase } from '../state/database.ts';

export const TAR_MEMBERS_SCHEMA = `
  CREATE TABLE member (tar INTEGER NOT NULL, content BLOB NOT NULL, size INTEGER NOT NULL, file INTEGER NOT NULL,
    PRIMARY KEY (tar, content)) WITHOUT ROWID;
`;

export interface TarMember {
  readonly content: ContentHash;
  readonly sizeBytes: number;
  /** The file that carries the content. */
  readonly fileId: number;
}

export class TarMembers {
  readonly #scratch: ScratchDatabase;
  readonly #add: ReturnType<ScratchDatabase['prepare']>;
  readonly #page: ReturnType<ScratchDatabase['prepare']>;
  readonly #drop: ReturnType<ScratchDatabase['prepare']>;

  constructor(scratch: ScratchDatabase) {
    this.#scratch = scratch;
    this.#add = scratch.prepare('INSERT INTO member (tar, content, size, file) VALUES (?, ?, ?, ?)');
    this.#page = scratch.prepare(
      'SELECT content, size, file FROM member WHERE tar = ? AND content > ? ORDER BY content LIMIT ?',
    );
    this.#drop = scratch.prepare('DELETE FROM member WHERE tar = ?');
  }

  add(tarId: number, member: TarMember): void {
    this.#scratch.beforeWrite();
    this.#add.run(tarId, bytesOf(member.content), member.sizeBytes, member.fileId);
  }

  /** By content hash, after the given one. */
  page(tarId: number, after: ContentHash | undefined, limit: number): TarMember[] {
    return this.#page.all(tarId, after === undefined ? new Uint8Array() : bytesOf(after), limit).map((row) => ({
      content: hexOf(row.content) as ContentHash,
      sizeBytes: row.size as number,
      fileId: row.file as number,
    }));
  }

  drop(tarId: number): void {
    this.#scratch.beforeWrite();
    this.#drop.run(tarId);
  }
}
