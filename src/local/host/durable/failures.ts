/** The texts of failures as the real extension writes them: apps see them in errors and in outputs. */

import type { FailureDetails } from './history.ts';

export interface Failure {
  readonly Reason: string;
  readonly Details: string;
  readonly FailureDetails: FailureDetails | null;
}

export function activityFailure(name: string, error: unknown): Failure {
  const message = messageOf(error);
  const details = failureDetails(message);
  return {
    Reason: `Activity function '${name}' failed: ${details?.ErrorMessage ?? message}`,
    Details: exceptionText(message, error instanceof Error ? error.stack : undefined),
    FailureDetails: details,
  };
}

export function orchestratorFailure(name: string, message: string): Failure {
  const reason = `Orchestrator function '${name}' failed: ${message}`;
  return { Reason: reason, Details: exceptionText(reason, undefined), FailureDetails: null };
}

/** `Details` must be a string, or the library gives up the parent's replay. */
export function terminatedChild(reason: string): Failure {
  return { Reason: reason, Details: exceptionText(reason, undefined), FailureDetails: null };
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error));
}

function exceptionText(message: string, stack: string | undefined): string {
  return JSON.stringify({
    $type: 'System.Exception, System.Private.CoreLib',
    ClassName: 'System.Exception',
    Message: message,
    Data: null,
    InnerException: null,
    HelpURL: null,
    StackTraceString: stack ?? null,
    RemoteStackTraceString: null,
    RemoteStackIndex: 0,
    ExceptionMethod: null,
    HResult: -2146233088,
    Source: null,
  });
}

/** With an exception properties provider the library makes the message of an activity's error a JSON text. */
function failureDetails(message: string): FailureDetails | null {
  if (!message.startsWith('{"errorType":')) return null;
  try {
    const parsed = JSON.parse(message) as Record<string, unknown>;
    if (typeof parsed.errorType !== 'string' || typeof parsed.errorMessage !== 'string') return null;
    return {
      ErrorType: parsed.errorType,
      ErrorMessage: parsed.errorMessage,
      StackTrace: typeof parsed.stackTrace === 'string' ? parsed.stackTrace : null,
      IsNonRetriable: parsed.isNonRetriable === true,
      Properties: parsed.properties ?? null,
      InnerFailure: null,
    };
  } catch {
    return null;
  }
}
