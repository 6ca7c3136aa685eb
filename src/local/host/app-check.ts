/** Refuses at start-up, with a reason, what this host would only fail at later. */

import { isDurableClient } from './invocation.ts';
import { type FunctionRegistry, type RegisteredFunction, RegistrationError } from './registry.ts';

const TRIGGERS = new Set(['httptrigger', 'timertrigger', 'queuetrigger', 'activitytrigger', 'orchestrationtrigger']);

export function checkApp(registry: FunctionRegistry): void {
  const problems = registry.all().flatMap((entry) => problemsOf(entry).map((problem) => `${entry.name}: ${problem}`));
  if (problems.length > 0) {
    throw new RegistrationError(`The app uses what the local host does not offer. ${problems.join(' ')}`);
  }
}

function problemsOf(entry: RegisteredFunction): string[] {
  const problems: string[] = [];
  const trigger = entry.trigger.type.toLowerCase();
  if (trigger === 'entitytrigger') {
    problems.push('Durable entities are not supported; keep the state in storage.');
  } else if (!TRIGGERS.has(trigger)) {
    problems.push(`The trigger ${entry.trigger.type} is not supported.`);
  }
  if (entry.metadata.retryOptions !== undefined) {
    problems.push('The option "retry" is not supported; retry in the function or by the queue.');
  }
  for (const [name, binding] of Object.entries(entry.metadata.bindings)) {
    const known =
      name === entry.triggerName || isDurableClient(binding.type) || (trigger === 'httptrigger' && name === '$return');
    if (!known)
      problems.push(`The ${binding.direction}put binding "${binding.type}" is not supported; use an SDK client.`);
  }
  return problems;
}
