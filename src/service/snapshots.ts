/** Listing snapshots, and reading one. */

import type { SnapshotInfo, SnapshotList } from '../contract/schemas.ts';
import type { OpenRepositories } from './open-repository.ts';
import { snapshotNotFound } from './refusals.ts';
import { snapshotInfoOf } from './snapshot-info.ts';

export interface SnapshotQuery {
  readonly source: string | undefined;
  /** Of the page before. */
  readonly continuation: string | undefined;
}

export class Snapshots {
  readonly #repositories: OpenRepositories;

  constructor(repositories: OpenRepositories) {
    this.#repositories = repositories;
  }

  async list(repositoryName: string, query: SnapshotQuery): Promise<SnapshotList> {
    const repository = await this.#repositories.get(repositoryName);
    const page = await repository.snapshots.page(query.continuation, query.source);
    return {
      snapshots: page.snapshots.map(snapshotInfoOf),
      continuation: page.continuation ?? null,
      ...(page.unreadable.length === 0 ? {} : { unreadable: [...page.unreadable] }),
    };
  }

  /** @throws AriusError `snapshot-not-found` */
  async get(repositoryName: string, name: string): Promise<SnapshotInfo> {
    const repository = await this.#repositories.get(repositoryName);
    const snapshot = await repository.snapshots.find(name);
    if (snapshot === undefined) {
      throw snapshotNotFound(repositoryName, name);
    }
    return snapshotInfoOf(snapshot);
  }
}
