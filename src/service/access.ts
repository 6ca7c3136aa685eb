/**
 * The one place that decides who may do what: every request passes it before its use case runs. The platform checks the
 * key a request carries against the key level asked for here, so whoever arrives at a `function` route holds a key.
 */

import type { RouteName } from '../contract/routes.ts';
import { repositoryName } from '../contract/schemas.ts';
import { AriusError } from '../errors.ts';

export type KeyLevel = 'anonymous' | 'function';

export interface Access {
  readonly caller: 'anyone' | 'key-holder';
  /** The repository the request is about; undefined for requests about none. */
  readonly repository: string | undefined;
}

/** Liveness is for load balancers and for telling "wrong URL" from "wrong key"; it says nothing about any repository. */
const ANONYMOUS_ROUTES: ReadonlySet<RouteName> = new Set(['health']);

/**
 * Containers that may share the account but are nobody's archive: our own staging, the platform's, a task hub's. An
 * agent that could name one of them would be given signatures into it.
 */
const RESERVED_NAME = /^(?:arius-staging|arius-jobs|azure-webjobs.*|.*-(?:applease|leases|largemessages))$/;

export function keyLevelOf(route: RouteName): KeyLevel {
  return ANONYMOUS_ROUTES.has(route) ? 'anonymous' : 'function';
}

/** @throws AriusError `bad-request` for a name no repository can have, `not-allowed` for one none may have */
export function authorize(route: RouteName, repository: string | undefined): Access {
  if (repository !== undefined) {
    requireRepositoryName(repository);
  }
  return { caller: keyLevelOf(route) === 'anonymous' ? 'anyone' : 'key-holder', repository };
}

export function requireRepositoryName(name: string): void {
  if (!repositoryName.safeParse(name).success) {
    throw new AriusError(
      'bad-request',
      `"${name.slice(0, 80)}" cannot be the name of a repository.`,
      'Use 3 to 63 lower-case letters, digits and single hyphens, beginning with a letter or digit.',
    );
  }
  if (RESERVED_NAME.test(name)) {
    throw new AriusError('not-allowed', `The name "${name}" is kept for the service itself.`, 'Choose another name.');
  }
}
