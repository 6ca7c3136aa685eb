import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { passphraseSettingOf, passphrasesFromSettings } from '../../src/service/passphrases.ts';
import { readSettings } from '../../src/service/settings.ts';

const emulator =
  'DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/x';
const account = 'DefaultEndpointsProtocol=https;AccountName=realaccount;AccountKey=a2V5';

describe('settings', () => {
  it('name the storage by account or by connection string, also that of the triggers', () => {
    expect(readSettings({ ARIUS_STORAGE_ACCOUNT: 'archive', AzureWebJobsStorage__accountName: 'host' })).toEqual({
      storage: { accountName: 'archive' },
      triggerStorage: { accountName: 'host' },
      maxShardEntryCount: 1024,
    });
    expect(readSettings({ ARIUS_STORAGE_CONNECTION_STRING: emulator, AzureWebJobsStorage: account })).toMatchObject({
      storage: { connectionString: emulator },
      triggerStorage: { connectionString: account },
    });
    expect(() => readSettings({ AzureWebJobsStorage: account })).toThrow('ARIUS_STORAGE_ACCOUNT');
    expect(() => readSettings({ ARIUS_STORAGE_ACCOUNT: 'archive' })).toThrow('AzureWebJobsStorage');
  });

  it('LC-10: allow another shard size on the emulator alone', () => {
    const changed = { ARIUS_MAX_SHARD_ENTRY_COUNT: '4', AzureWebJobsStorage: emulator };
    expect(readSettings({ ...changed, ARIUS_STORAGE_CONNECTION_STRING: emulator }).maxShardEntryCount).toBe(4);
    const development = { ...changed, ARIUS_STORAGE_CONNECTION_STRING: 'UseDevelopmentStorage=true' };
    expect(readSettings(development).maxShardEntryCount).toBe(4);
    for (const storage of [{ ARIUS_STORAGE_CONNECTION_STRING: account }, { ARIUS_STORAGE_ACCOUNT: 'archive' }]) {
      expect(() => readSettings({ ...changed, ...storage })).toThrow('not the emulator');
    }
    for (const count of ['0', '1.5', 'many']) {
      const wrong = {
        ARIUS_MAX_SHARD_ENTRY_COUNT: count,
        ARIUS_STORAGE_CONNECTION_STRING: emulator,
        AzureWebJobsStorage: emulator,
      };
      expect(() => readSettings(wrong)).toThrow('whole number');
    }
  });
});

describe('passphrases', () => {
  it('have one setting for each repository, and are not printed', () => {
    expect(passphraseSettingOf('my-photos')).toBe('ARIUS_PASSPHRASE__MY_PHOTOS');
    const source = passphrasesFromSettings({
      ARIUS_PASSPHRASE__MY_PHOTOS: 'correct horse',
      ARIUS_PASSPHRASE__EMPTY: '',
    });
    const passphrase = source.passphraseOf('my-photos');
    expect(Buffer.from(passphrase?.bytes ?? []).toString()).toBe('correct horse');
    expect(`${String(passphrase)} ${JSON.stringify({ passphrase })} ${inspect(passphrase)}`).not.toContain('correct');
    expect(source.passphraseOf('other')).toBeUndefined();
    expect(source.passphraseOf('empty')).toBeUndefined();
  });
});
