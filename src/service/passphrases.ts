/**
 * Where the service has the passphrases of its sealed repositories from: one app setting each (in Azure a reference to a
 * key vault), `ARIUS_PASSPHRASE__{REPOSITORY}`, upper case, `_` for `-`. Repository names hold no underscore, so no two
 * share a setting. They are never logged, never sent, and never in an argument list.
 */

import { Passphrase } from '../hashing/passphrase.ts';
import type { Environment } from './settings.ts';

export interface PassphraseSource {
  passphraseOf(repository: string): Passphrase | undefined;
}

export function passphraseSettingOf(repository: string): string {
  return `ARIUS_PASSPHRASE__${repository.toUpperCase().replaceAll('-', '_')}`;
}

export function passphrasesFromSettings(environment: Environment): PassphraseSource {
  return {
    passphraseOf: (repository) => {
      const text = environment[passphraseSettingOf(repository)];
      return text === undefined || text === '' ? undefined : new Passphrase(text);
    },
  };
}
