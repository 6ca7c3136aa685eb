/** The service of this process, made from the app settings when the first request needs it. */

import { azureStorage } from '../storage/azure/azure-storage.ts';
import type { Storage } from '../storage/ports.ts';
import { meteredStorage } from './metering.ts';
import { passphrasesFromSettings } from './passphrases.ts';
import { JOBS_QUEUE, Service } from './service.ts';
import { type Environment, readSettings, type StorageSettings } from './settings.ts';

let instance: Promise<Service> | undefined;

/** Ready for use. @throws AriusError when a setting is missing or wrong; the next request tries again */
export async function serviceOfProcess(): Promise<Service> {
  instance ??= serviceFromSettings(process.env).catch((error: unknown) => {
    instance = undefined;
    throw error;
  });
  const service = await instance;
  await service.ready();
  return service;
}

async function serviceFromSettings(environment: Environment): Promise<Service> {
  const { storage, triggerStorage, maxShardEntryCount } = readSettings(environment);
  return new Service({
    storage: meteredStorage(await openStorage(storage)),
    jobsQueue: (await openStorage(triggerStorage)).queue(JOBS_QUEUE),
    clock: { now: () => new Date() },
    passphrases: passphrasesFromSettings(environment),
    maxShardEntryCount,
  });
}

async function openStorage(settings: StorageSettings): Promise<Storage> {
  if ('connectionString' in settings) {
    return azureStorage(settings);
  }
  // Loaded only where there is an identity: it takes a good part of the start of a local service.
  const { DefaultAzureCredential } = await import('@azure/identity');
  return azureStorage({ accountName: settings.accountName, credential: new DefaultAzureCredential() });
}
