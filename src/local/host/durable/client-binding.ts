/**
 * The text that a `durableClient` input receives. `rpcBaseUrl` carries a secret of this process in its path, because
 * the client sends no key there; the other URLs take the durable system key.
 */

const WEBHOOK_PATH = '/runtime/webhooks/durabletask';
const INSTANCE_PLACEHOLDER = 'INSTANCEID';

export interface ClientBindingOptions {
  readonly origin: string;
  readonly hubName: string;
  readonly key: string;
  readonly rpcBaseUrl: string;
}

export function clientBinding(options: ClientBindingOptions): string {
  const { hubName, key, rpcBaseUrl } = options;
  const baseUrl = options.origin + WEBHOOK_PATH;
  const create = `${baseUrl}/orchestrators/{functionName}[/{instanceId}]`;
  return JSON.stringify({
    taskHubName: hubName,
    connectionName: null,
    creationUrls: {
      createNewInstancePostUri: `${create}?code=${key}`,
      createAndWaitOnNewInstancePostUri: `${create}?timeout={timeoutInSeconds}&pollingInterval={intervalInSeconds}&code=${key}`,
    },
    managementUrls: {
      id: INSTANCE_PLACEHOLDER,
      ...managementUrls(options, INSTANCE_PLACEHOLDER),
      ...rewindUrl(options),
    },
    baseUrl,
    requiredQueryStringParameters: `code=${key}`,
    rpcBaseUrl,
    httpBaseUrl: null,
  });
}

export type ManagementUrls = Record<
  | 'statusQueryGetUri'
  | 'sendEventPostUri'
  | 'terminatePostUri'
  | 'purgeHistoryDeleteUri'
  | 'restartPostUri'
  | 'suspendPostUri'
  | 'resumePostUri',
  string
>;

/** As in the answer to a start: everything but rewind. */
export function managementUrls(options: Omit<ClientBindingOptions, 'rpcBaseUrl'>, instanceId: string): ManagementUrls {
  const at = (path: string, query = ''): string =>
    `${options.origin}${WEBHOOK_PATH}/instances/${instanceId}${path}?${query}taskHub=${options.hubName}&connection=Storage&code=${options.key}`;
  return {
    statusQueryGetUri: at(''),
    sendEventPostUri: at('/raiseEvent/{eventName}'),
    terminatePostUri: at('/terminate', 'reason={text}&'),
    purgeHistoryDeleteUri: at(''),
    restartPostUri: at('/restart'),
    suspendPostUri: at('/suspend', 'reason={text}&'),
    resumePostUri: at('/resume', 'reason={text}&'),
  };
}

/** The client replaces placeholders in every URL, so it has to be there although the host refuses to rewind. */
function rewindUrl(options: ClientBindingOptions): { rewindPostUri: string } {
  const { rewindPostUri } = { rewindPostUri: managementUrls(options, INSTANCE_PLACEHOLDER).terminatePostUri };
  return { rewindPostUri: rewindPostUri.replace('/terminate?', '/rewind?') };
}
