/**
 * The state row of each repository. Invariant: the epoch only ever moves forward, the layout version only ever grows, and
 * both change by ETag, so a late writer cannot bring back a version that readers have left behind. Losing the row loses
 * nothing: adopting the container brings it back.
 */

import { ROW_CHANGE_ATTEMPTS_MAX } from '../limits.ts';
import { numberColumn, optionalTextColumn, timeColumn, wordColumn } from '../records/row-columns.ts';
import type { AccessTier, Row, RowValues, Table } from '../storage/ports.ts';
import { repositoryNotFound, stillChanging } from './refusals.ts';

export type RepositoryKind = 'plain' | 'sealed';
export type UploadTier = Exclude<AccessTier, 'archive'>;

export interface RepositoryState {
  readonly name: string;
  readonly kind: RepositoryKind;
  readonly tier: UploadTier;
  readonly createdAt: Date;
  /** Name of the newest snapshot that was noticed; null before the first. */
  readonly epoch: string | null;
  /** Counts the flushes that changed which shards exist. */
  readonly layoutVersion: number;
  /** Base64 of a sealed constant, or of the newest snapshot of an adopted repository; null for a plain one. */
  readonly passphraseProof: string | null;
}

const SCHEMA_VERSION = 1;
/** All rows in one partition: repositories are few, and listing them is one query. */
const PARTITION = 'repository';
const KINDS: readonly RepositoryKind[] = ['plain', 'sealed'];
const UPLOAD_TIERS: readonly UploadTier[] = ['hot', 'cool', 'cold'];

export class RepositoryStates {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  async insert(state: RepositoryState): Promise<'inserted' | 'exists'> {
    const result = await this.#table.insert(PARTITION, state.name, valuesOf(state));
    return result.outcome === 'written' ? 'inserted' : 'exists';
  }

  async find(name: string): Promise<RepositoryState | undefined> {
    const row = await this.#table.get(PARTITION, name);
    return row === undefined ? undefined : stateOf(row);
  }

  /** @throws AriusError `repository-not-found` */
  async get(name: string): Promise<RepositoryState> {
    const state = await this.find(name);
    if (state === undefined) {
      throw repositoryNotFound(name);
    }
    return state;
  }

  async list(): Promise<readonly RepositoryState[]> {
    const states: RepositoryState[] = [];
    let continuation: string | undefined;
    do {
      const page = await this.#table.queryPage({
        partition: PARTITION,
        ...(continuation === undefined ? {} : { continuation }),
      });
      states.push(...page.rows.map(stateOf));
      continuation = page.continuation;
    } while (continuation !== undefined);
    return states;
  }

  /** The state afterwards; unchanged when the row has this epoch or a newer one already. */
  async moveEpochForward(name: string, epoch: string): Promise<RepositoryState> {
    return await this.#change(name, (state) =>
      state.epoch !== null && state.epoch >= epoch ? state : { ...state, epoch },
    );
  }

  async bumpLayoutVersion(name: string): Promise<RepositoryState> {
    return await this.#change(name, (state) => ({ ...state, layoutVersion: state.layoutVersion + 1 }));
  }

  async #change(name: string, change: (state: RepositoryState) => RepositoryState): Promise<RepositoryState> {
    for (let attempt = 0; attempt < ROW_CHANGE_ATTEMPTS_MAX; attempt++) {
      const row = await this.#table.get(PARTITION, name);
      if (row === undefined) {
        throw repositoryNotFound(name);
      }
      const state = stateOf(row);
      const next = change(state);
      if (next === state) {
        return state;
      }
      if ((await this.#table.replace(PARTITION, name, valuesOf(next), row.etag)).outcome === 'written') {
        return next;
      }
    }
    throw stillChanging(`The state of the repository "${name}"`);
  }
}

function valuesOf(state: RepositoryState): RowValues {
  return {
    schemaVersion: SCHEMA_VERSION,
    kind: state.kind,
    tier: state.tier,
    createdAt: state.createdAt.toISOString(),
    epoch: state.epoch ?? '',
    layoutVersion: state.layoutVersion,
    passphraseProof: state.passphraseProof ?? '',
  };
}

function stateOf(row: Row): RepositoryState {
  return {
    name: row.rowKey,
    kind: wordColumn(row, 'kind', KINDS),
    tier: wordColumn(row, 'tier', UPLOAD_TIERS),
    createdAt: timeColumn(row, 'createdAt'),
    epoch: optionalTextColumn(row, 'epoch'),
    layoutVersion: numberColumn(row, 'layoutVersion'),
    passphraseProof: optionalTextColumn(row, 'passphraseProof'),
  };
}
