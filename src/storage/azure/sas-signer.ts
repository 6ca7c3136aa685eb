/**
 * Shared access signatures: with the account key on the emulator, with a user-delegation key elsewhere. That key is
 * cached and shared by all signatures, so that signing makes no request. A signature has no start time: one would
 * refuse clients whose clock is ahead of the storage service's.
 */

import {
  BlobSASPermissions,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  type StorageSharedKeyCredential,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { CLOCK_SKEW_MS, DELEGATION_KEY_LIFETIME_MS } from '../../limits.ts';
import { CONTAINER_SAS_PERMISSIONS } from '../sas-permissions.ts';
import { answered } from './azure-errors.ts';

type FetchDelegationKey = (startsOn: Date, expiresOn: Date, abortSignal: AbortSignal) => Promise<UserDelegationKey>;
type SignatureValues = Parameters<typeof generateBlobSASQueryParameters>[0];
type Sign = (values: SignatureValues, expiresOn: Date) => Promise<string>;

interface HeldKey {
  readonly key: Promise<UserDelegationKey>;
  readonly expiresAtMs: number;
}

export class SasSigner {
  readonly #sign: Sign;
  readonly #protocol: SASProtocol;

  private constructor(sign: Sign, protocol: SASProtocol) {
    this.#sign = sign;
    this.#protocol = protocol;
  }

  static withAccountKey(credential: StorageSharedKeyCredential, isPlainHttp: boolean): SasSigner {
    return new SasSigner(
      async (values) => generateBlobSASQueryParameters(values, credential).toString(),
      isPlainHttp ? SASProtocol.HttpsAndHttp : SASProtocol.Https,
    );
  }

  static withUserDelegation(accountName: string, fetchKey: FetchDelegationKey): SasSigner {
    const keys = new DelegationKeyCache(fetchKey);
    return new SasSigner(
      async (values, expiresOn) =>
        generateBlobSASQueryParameters(values, await keys.validUntil(expiresOn), accountName).toString(),
      SASProtocol.Https,
    );
  }

  /** The query of a URL for one blob. `permissions`: SAS letters. */
  async blob(containerName: string, blobName: string, permissions: string, expiresOn: Date): Promise<string> {
    return await this.#sign(
      { containerName, blobName, permissions: BlobSASPermissions.parse(permissions), ...this.#common(expiresOn) },
      expiresOn,
    );
  }

  /** The query of a URL for one container and everything in it. */
  async container(containerName: string, expiresOn: Date): Promise<string> {
    const permissions = ContainerSASPermissions.parse(CONTAINER_SAS_PERMISSIONS);
    return await this.#sign({ containerName, permissions, ...this.#common(expiresOn) }, expiresOn);
  }

  #common(expiresOn: Date): Pick<SignatureValues, 'expiresOn' | 'protocol'> {
    return { expiresOn, protocol: this.#protocol };
  }
}

/** One key at a time. A signature is void when its key expires, so a key must outlive what it signs. */
class DelegationKeyCache {
  readonly #fetchKey: FetchDelegationKey;
  #held: HeldKey | undefined;

  constructor(fetchKey: FetchDelegationKey) {
    this.#fetchKey = fetchKey;
  }

  async validUntil(expiresOn: Date): Promise<UserDelegationKey> {
    if (this.#held === undefined || this.#held.expiresAtMs < expiresOn.getTime() + CLOCK_SKEW_MS) {
      this.#held = this.#fetch(expiresOn);
    }
    const held = this.#held;
    try {
      return await held.key;
    } catch (error) {
      // A failed fetch is not kept: the next signature asks again.
      if (this.#held === held) {
        this.#held = undefined;
      }
      throw error;
    }
  }

  #fetch(neededUntil: Date): HeldKey {
    const now = Date.now();
    const expiresAtMs = Math.max(now + DELEGATION_KEY_LIFETIME_MS, neededUntil.getTime() + 2 * CLOCK_SKEW_MS);
    const key = answered((abortSignal) =>
      this.#fetchKey(new Date(now - CLOCK_SKEW_MS), new Date(expiresAtMs), abortSignal),
    );
    return { key, expiresAtMs };
  }
}
