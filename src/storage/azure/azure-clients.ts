/**
 * The clients of one account, from a connection string (the emulator) or a name and a managed identity. The libraries'
 * own retries are off everywhere: they repeat conditional writes and report our own success as somebody else's
 * (see docs/design/conditional-writes.md). src/storage/attempts.ts retries instead.
 */

import { TableClient } from '@azure/data-tables';
import {
  AnonymousCredential,
  BlobServiceClient,
  newPipeline,
  type Pipeline,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { AriusError } from '../../errors.ts';
import { SasSigner } from './sas-signer.ts';

/** Of a managed identity; made by whoever owns the identity. */
type TokenCredential = Extract<BlobServiceClient['credential'], { getToken: unknown }>;

export type AzureStorageConfig =
  | { readonly connectionString: string }
  | {
      readonly accountName: string;
      readonly credential: TokenCredential;
      /** Other than the public cloud's, without a trailing slash. */
      readonly endpoints?: StorageEndpoints;
    };

export interface StorageEndpoints {
  readonly blob: string;
  readonly table: string;
  readonly queue: string;
}

/** The other kind, with a SharedAccessSignature, cannot sign. */
const HAS_ACCOUNT_KEY = /(?:^|;)(?:AccountKey=|UseDevelopmentStorage=true)/i;
const SINGLE_TRY = { retryOptions: { maxTries: 1 } };

export interface AzureClients {
  readonly blobs: BlobServiceClient;
  readonly queues: QueueServiceClient;
  readonly signer: SasSigner;
  /** For URLs that carry their own signature. */
  readonly anonymousPipeline: Pipeline;
  table(name: string): TableClient;
}

export function azureClients(config: AzureStorageConfig): AzureClients {
  return 'connectionString' in config ? clientsWithKey(config.connectionString) : clientsWithIdentity(config);
}

function clientsWithKey(connectionString: string): AzureClients {
  const blobs = HAS_ACCOUNT_KEY.test(connectionString)
    ? BlobServiceClient.fromConnectionString(connectionString, SINGLE_TRY)
    : undefined;
  const credential = blobs?.credential;
  if (blobs === undefined || !(credential instanceof StorageSharedKeyCredential)) {
    throw new AriusError(
      'usage',
      'The storage connection string has no account key, which signing needs',
      'Use a connection string with AccountKey, or an account name and a managed identity.',
    );
  }
  const isPlainHttp = new URL(blobs.url).protocol === 'http:';
  return {
    blobs,
    queues: QueueServiceClient.fromConnectionString(connectionString, SINGLE_TRY),
    signer: SasSigner.withAccountKey(credential, isPlainHttp),
    anonymousPipeline: newPipeline(new AnonymousCredential(), SINGLE_TRY),
    table: cached((name) =>
      TableClient.fromConnectionString(connectionString, name, {
        allowInsecureConnection: isPlainHttp,
        retryOptions: { maxRetries: 0 },
      }),
    ),
  };
}

function clientsWithIdentity(config: Exclude<AzureStorageConfig, { connectionString: string }>): AzureClients {
  const { accountName, credential } = config;
  const endpoints = config.endpoints ?? {
    blob: `https://${accountName}.blob.core.windows.net`,
    table: `https://${accountName}.table.core.windows.net`,
    queue: `https://${accountName}.queue.core.windows.net`,
  };
  const blobs = new BlobServiceClient(endpoints.blob, credential, SINGLE_TRY);
  return {
    blobs,
    queues: new QueueServiceClient(endpoints.queue, credential, SINGLE_TRY),
    signer: SasSigner.withUserDelegation(accountName, (startsOn, expiresOn, abortSignal) =>
      blobs.getUserDelegationKey(startsOn, expiresOn, { abortSignal }),
    ),
    anonymousPipeline: newPipeline(new AnonymousCredential(), SINGLE_TRY),
    table: cached((name) => new TableClient(endpoints.table, name, credential, { retryOptions: { maxRetries: 0 } })),
  };
}

/** The product has a handful of tables; a client each is kept. */
function cached(create: (name: string) => TableClient): (name: string) => TableClient {
  const clients = new Map<string, TableClient>();
  return (name) => {
    const client = clients.get(name) ?? create(name);
    clients.set(name, client);
    return client;
  };
}
