import { StorageSharedKeyCredential, type UserDelegationKey } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { SasSigner } from '../../../src/storage/azure/sas-signer.ts';

const HOUR_MS = 60 * 60_000;
const account = new StorageSharedKeyCredential('account', Buffer.from('key').toString('base64'));
const inHours = (hours: number): Date => new Date(Date.now() + hours * HOUR_MS);

function delegatingSigner(options: { failures?: number } = {}): { signer: SasSigner; fetched: [Date, Date][] } {
  const fetched: [Date, Date][] = [];
  let failures = options.failures ?? 0;
  const signer = SasSigner.withUserDelegation('account', async (startsOn, expiresOn): Promise<UserDelegationKey> => {
    fetched.push([startsOn, expiresOn]);
    if (failures > 0) {
      failures -= 1;
      throw Object.assign(new Error('busy'), { statusCode: 503 });
    }
    return {
      signedObjectId: 'object',
      signedTenantId: 'tenant',
      signedStartsOn: startsOn,
      signedExpiresOn: expiresOn,
      signedService: 'b',
      signedVersion: '2025-11-05',
      value: Buffer.from(`key ${fetched.length}`).toString('base64'),
    };
  });
  return { signer, fetched };
}

describe('SasSigner', () => {
  it('signs one blob with exactly the permission asked for, without a start time', async () => {
    const expiresOn = new Date('2030-01-02T03:04:05.678Z');
    const query = new URLSearchParams(await SasSigner.withAccountKey(account, false).blob('c', 'a/b', 'c', expiresOn));
    expect(query.get('sp')).toBe('c');
    expect(query.get('sr')).toBe('b');
    expect(query.get('se')).toBe('2030-01-02T03:04:05Z');
    expect(query.has('st')).toBe(false);
  });

  it('signs a whole container for the writes of a flush', async () => {
    const query = new URLSearchParams(await SasSigner.withAccountKey(account, false).container('c', inHours(1)));
    expect(query.get('sp')).toBe('racwdl');
    expect(query.get('sr')).toBe('c');
  });

  it('allows plain HTTP to the emulator only', async () => {
    const emulator = await SasSigner.withAccountKey(account, true).blob('c', 'a', 'r', inHours(1));
    expect(new URLSearchParams(emulator).get('spr')).toBe('https,http');
    const azure = await SasSigner.withAccountKey(account, false).blob('c', 'a', 'r', inHours(1));
    expect(new URLSearchParams(azure).get('spr')).toBe('https');
    const delegated = await delegatingSigner().signer.blob('c', 'a', 'r', inHours(1));
    expect(new URLSearchParams(delegated).get('spr')).toBe('https');
  });

  it('asks for one delegation key and signs with it, also when many signatures are asked at once', async () => {
    const { signer, fetched } = delegatingSigner();
    const queries = await Promise.all(
      Array.from({ length: 50 }, (_, index) => signer.blob('c', `${index}`, 'r', inHours(1))),
    );
    await signer.container('c', inHours(2));
    expect(fetched).toHaveLength(1);
    expect(new URLSearchParams(queries[0]).get('skoid')).toBe('object');
    const [startsOn, expiresOn] = fetched[0] ?? [];
    // From a little earlier, since the clocks differ; for a day.
    expect(startsOn?.getTime()).toBeLessThan(Date.now());
    expect(expiresOn?.getTime()).toBeGreaterThan(inHours(23).getTime());
  });

  it('renews the key when it would end before the signature', async () => {
    const { signer, fetched } = delegatingSigner();
    await signer.blob('c', 'a', 'r', inHours(1));
    await signer.blob('c', 'a', 'r', inHours(23));
    expect(fetched).toHaveLength(1);
    const renewed = await signer.blob('c', 'a', 'r', inHours(24));
    expect(fetched).toHaveLength(2);
    expect(fetched[1]?.[1].getTime()).toBeGreaterThan(inHours(24).getTime());
    expect(Date.parse(new URLSearchParams(renewed).get('ske') ?? '')).toBeGreaterThan(inHours(24).getTime());
  });

  it('does not keep a failed key: the next signature asks again', async () => {
    const { signer, fetched } = delegatingSigner({ failures: 1 });
    await expect(signer.blob('c', 'a', 'r', inHours(1))).rejects.toThrow('503');
    await signer.blob('c', 'a', 'r', inHours(1));
    expect(fetched).toHaveLength(2);
  });
});
