/**
 * A command's connection to one repository: the service (deployed, or embedded for the time of the command), the
 * repository, and a passphrase that has been proven to open it. Nothing is uploaded before all three stand.
 */

import { type BodyCodec, createBodyCodec } from '../codec/body-codec.ts';
import { BodyCorruptError } from '../codec/errors.ts';
import type { RepositoryInfo } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';
import { Hasher } from '../hashing/hasher.ts';
import { Passphrase } from '../hashing/passphrase.ts';
import { SNAPSHOT_DECODED_BYTES_MAX } from '../limits.ts';
import type { UploadTier } from './archive/archive-context.ts';
import type { EmbeddedService, EmbeddedServiceLauncher } from './embedded.ts';
import { BlobClient } from './transport/blob-client.ts';
import { RepositoryApi } from './transport/repository-api.ts';
import type { Sleep } from './transport/retry.ts';
import { ServiceClient } from './transport/service-client.ts';

export interface SessionOptions {
  readonly repository: string;
  /** Undefined: no service is configured, so the embedded one is started. */
  readonly service: { readonly url: string; readonly functionKey: string | undefined } | undefined;
  readonly stateDirectory: string;
  readonly passphraseText: string | undefined;
  /** Asks a person. Undefined: there is no terminal. */
  readonly promptPassphrase: (() => Promise<string>) | undefined;
  /** Create the repository when it is missing; `dryRun`: only as if. Undefined: a missing one is an error. */
  readonly create: { readonly tier: UploadTier | undefined; readonly dryRun: boolean } | undefined;
  /** Called before bytes are sent (an upload limit). */
  readonly throttle?: (bytes: Uint8Array) => Promise<void>;
  readonly embedded: EmbeddedServiceLauncher;
  readonly signal: AbortSignal;
  /** Tests: how pauses between attempts pass. */
  readonly sleep?: Sleep;
  onProgress(message: string): void;
}

export interface Session {
  readonly api: RepositoryApi;
  readonly blobs: BlobClient;
  readonly codec: BodyCodec;
  readonly hasher: Hasher;
  readonly info: RepositoryInfo;
  /** `new`: this session created it. `imagined`: it is missing, and a dry run goes on as if it were there. */
  readonly found: 'existing' | 'new' | 'imagined';
  /** Ends the embedded service with everything saved; for a deployed one, only closes connections. */
  close(): Promise<void>;
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const opening = new Opening(options);
  try {
    return await opening.open();
  } catch (error) {
    await opening.close().catch(() => undefined);
    throw error;
  }
}

/** Attempts before it is known that anything answers at the address: a wrong one should be told soon. */
const FIRST_CONTACT_ATTEMPTS = 3;

class Opening {
  readonly #options: SessionOptions;
  #service: EmbeddedService | undefined;
  #client: ServiceClient | undefined;
  readonly #blobs: BlobClient;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#blobs = new BlobClient({
      signal: options.signal,
      ...(options.sleep === undefined ? {} : { sleep: options.sleep }),
      ...(options.throttle === undefined ? {} : { throttle: options.throttle }),
    });
  }

  async open(): Promise<Session> {
    let { passphraseText } = this.#options;
    let client = await this.#connect(passphraseText);
    let api = new RepositoryApi(client, this.#options.repository, this.#options.signal);
    const { info, found } = await this.#repository(api, passphraseText !== undefined);
    if (info.kind === 'sealed' && passphraseText === undefined) {
      passphraseText = await this.#prompt(info);
      if (this.#service !== undefined) {
        // The embedded service seals and opens too, and gets its passphrase only when it starts.
        await this.#disconnect();
        client = await this.#connect(passphraseText);
        api = new RepositoryApi(client, this.#options.repository, this.#options.signal);
      }
    }
    const passphrase =
      found === 'imagined' ? passphraseOf(passphraseText) : await provenPassphrase(info, passphraseText);
    return {
      api,
      blobs: this.#blobs,
      codec: createBodyCodec(passphrase),
      hasher: new Hasher(passphrase),
      info,
      found,
      close: () => this.close(),
    };
  }

  async close(): Promise<void> {
    await this.#blobs.close();
    await this.#disconnect();
  }

  async #connect(passphraseText: string | undefined): Promise<ServiceClient> {
    const { service, repository, signal } = this.#options;
    let endpoint = service;
    if (endpoint === undefined) {
      this.#service = await this.#options.embedded.start({
        stateDirectory: this.#options.stateDirectory,
        passphrases: passphraseText === undefined ? {} : { [repository]: passphraseText },
        onProgress: this.#options.onProgress,
        keepRunning: false,
        signal,
      });
      endpoint = { url: this.#service.url, functionKey: this.#service.functionKey };
    }
    const clientOptions = {
      ...endpoint,
      signal,
      ...(this.#options.sleep === undefined ? {} : { sleep: this.#options.sleep }),
    };
    const probe = new ServiceClient({ ...clientOptions, attemptsMax: FIRST_CONTACT_ATTEMPTS });
    try {
      await probe.call('health', {});
    } finally {
      await probe.close();
    }
    this.#client = new ServiceClient(clientOptions);
    return this.#client;
  }

  async #disconnect(): Promise<void> {
    await this.#client?.close();
    this.#client = undefined;
    const service = this.#service;
    this.#service = undefined;
    // A service that another command owns goes on; what this one wrote must be saved all the same.
    if (service?.shared === true && this.#options.create !== undefined) {
      await service.saved();
    }
    await service?.stop();
  }

  async #repository(api: RepositoryApi, sealed: boolean): Promise<Pick<Session, 'info' | 'found'>> {
    try {
      return { info: await api.get(), found: 'existing' };
    } catch (error) {
      if (!(error instanceof AriusError) || error.code !== 'repository-not-found') {
        throw error;
      }
      if (this.#options.create === undefined) {
        throw new AriusError(
          'repository-not-found',
          `There is no repository "${this.#options.repository}".`,
          'Check the name given with --repository; `arius-agent archive <folder>` creates one.',
          { cause: error },
        );
      }
      const kind = sealed ? 'sealed' : 'plain';
      const { tier, dryRun } = this.#options.create;
      return dryRun
        ? { info: imagined(this.#options.repository, kind, tier), found: 'imagined' }
        : { info: await api.create(kind, tier), found: 'new' };
    }
  }

  async #prompt(info: RepositoryInfo): Promise<string> {
    if (this.#options.promptPassphrase === undefined) {
      throw new AriusError(
        'passphrase-needed',
        `The repository "${info.name}" is sealed.`,
        'Give its passphrase with --passphrase-file or in ARIUS_PASSPHRASE.',
      );
    }
    return this.#options.promptPassphrase();
  }
}

/** The passphrase opens the repository's proof; a plain repository has none, and must not be taken for a sealed one. */
async function provenPassphrase(
  info: RepositoryInfo,
  passphraseText: string | undefined,
): Promise<Passphrase | undefined> {
  if (info.kind === 'plain') {
    if (passphraseText !== undefined) {
      throw new AriusError(
        'passphrase-wrong',
        `The repository "${info.name}" is plain: nothing in it is encrypted, with or without a passphrase.`,
        'Leave the passphrase away, or choose another repository with --repository to create a sealed one.',
      );
    }
    return undefined;
  }
  const passphrase = passphraseOf(passphraseText);
  if (passphrase === undefined || !(await opens(info, passphrase))) {
    throw new AriusError(
      'passphrase-wrong',
      `The passphrase does not open the repository "${info.name}".`,
      'Check the passphrase; nothing was uploaded.',
    );
  }
  return passphrase;
}

function passphraseOf(text: string | undefined): Passphrase | undefined {
  return text === undefined || text === '' ? undefined : new Passphrase(text);
}

function imagined(name: string, kind: 'plain' | 'sealed', tier: UploadTier = 'cool'): RepositoryInfo {
  return { name, kind, tier, createdAt: new Date().toISOString(), epoch: null, passphraseProof: null };
}

async function opens(info: RepositoryInfo, passphrase: Passphrase): Promise<boolean> {
  if (info.passphraseProof === null) {
    throw new AriusError(
      'passphrase-missing-in-service',
      `The service cannot prove a passphrase for the sealed repository "${info.name}".`,
      'Give the service the passphrase too, then run the same command again.',
    );
  }
  try {
    await createBodyCodec(passphrase).decode(Buffer.from(info.passphraseProof, 'base64'), SNAPSHOT_DECODED_BYTES_MAX);
    return true;
  } catch (error) {
    if (error instanceof BodyCorruptError) {
      return false;
    }
    throw error;
  }
}
