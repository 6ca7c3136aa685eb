/** One repository that cannot be looked after (a missing passphrase, say) must not keep the others from it. */

import type { Service } from '../src/service/service.ts';
import { type ErrorLog, problemOf } from './problems.ts';

interface WarningLog extends ErrorLog {
  warn(...parts: unknown[]): void;
}

export async function eachRepository(
  service: Service,
  log: WarningLog,
  work: (repository: string) => Promise<void>,
): Promise<void> {
  for (const repository of await service.housekeeping.repositoryNames()) {
    try {
      await work(repository);
    } catch (error) {
      const problem = problemOf(error, log, `Looking after the repository ${repository}`);
      log.warn(`The repository ${repository} was passed over: ${problem.detail} ${problem.next}`);
    }
  }
}
