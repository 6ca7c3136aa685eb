/** The app settings of the service, read and checked once. A setting that cannot be is an error at the first request. */

import { AriusError } from '../errors.ts';
import { MAX_SHARD_ENTRY_COUNT } from '../limits.ts';

export type StorageSettings = { readonly connectionString: string } | { readonly accountName: string };

export interface ServiceSettings {
  readonly storage: StorageSettings;
  /** The storage of the triggers, which may be another account: the queue of jobs is there. */
  readonly triggerStorage: StorageSettings;
  readonly maxShardEntryCount: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The setting, or the prefix of the settings, of the storage that triggers listen to. */
export const TRIGGER_CONNECTION = 'AzureWebJobsStorage';
const CONNECTION_STRING = 'ARIUS_STORAGE_CONNECTION_STRING';
const ACCOUNT = 'ARIUS_STORAGE_ACCOUNT';
const SHARD_ENTRY_COUNT = 'ARIUS_MAX_SHARD_ENTRY_COUNT';

export function readSettings(environment: Environment): ServiceSettings {
  const storage = readStorage(environment, CONNECTION_STRING, ACCOUNT);
  const triggerStorage = readStorage(environment, TRIGGER_CONNECTION, `${TRIGGER_CONNECTION}__accountName`);
  return { storage, triggerStorage, maxShardEntryCount: readShardEntryCount(environment, storage) };
}

function readStorage(environment: Environment, connectionSetting: string, accountSetting: string): StorageSettings {
  const connectionString = environment[connectionSetting];
  const accountName = environment[accountSetting];
  if (connectionString !== undefined && connectionString !== '') {
    return { connectionString };
  }
  if (accountName !== undefined && accountName !== '') {
    return { accountName };
  }
  throw wrongSetting(
    `Neither ${accountSetting} nor ${connectionSetting} is set.`,
    `Set ${accountSetting} to the name of the storage account.`,
  );
}

/**
 * Other clients split shards at exactly 1024 entries. A smaller number makes deep layouts with few files, for tests; on
 * a real account it would lay out a real archive in a way that those clients would undo.
 */
function readShardEntryCount(environment: Environment, storage: StorageSettings): number {
  const text = environment[SHARD_ENTRY_COUNT];
  if (text === undefined || text === '') {
    return MAX_SHARD_ENTRY_COUNT;
  }
  if (!isEmulator(storage)) {
    throw wrongSetting(`${SHARD_ENTRY_COUNT} is set, but the storage is not the emulator.`, 'Remove that setting.');
  }
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) {
    throw wrongSetting(`${SHARD_ENTRY_COUNT} is not a whole number from 1.`, 'Correct or remove that setting.');
  }
  return count;
}

function isEmulator(storage: StorageSettings): boolean {
  return (
    'connectionString' in storage &&
    /(?:^|;)\s*(?:UseDevelopmentStorage=true|AccountName=devstoreaccount1)\s*(?:;|$)/i.test(storage.connectionString)
  );
}

function wrongSetting(detail: string, next: string): AriusError {
  return new AriusError('internal', `The service is not configured: ${detail}`, next);
}
