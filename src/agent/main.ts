/**
 * The command line. Every way out of a command ends here: an exit code, and for a failure one line with a stable code
 * and the next step.
 */

import { CommanderError } from 'commander';
import { AriusError } from '../errors.ts';
import { SIGNAL_ECHO_MS_MAX } from '../limits.ts';
import type { AgentDependencies } from './command.ts';
import { buildProgram } from './command-line.ts';
import { HumanOutput } from './output/human-output.ts';
import { JsonOutput } from './output/json-output.ts';
import type { Output } from './output/output.ts';
import type { CommonOptions } from './settings.ts';

export type { AgentDependencies } from './command.ts';

export interface RunOptions extends AgentDependencies {
  /** Instead of the signals of the process (tests). */
  readonly signal?: AbortSignal;
}

/** `argv`: the arguments alone. Resolves with the exit code, and never rejects. */
export async function runAgent(argv: readonly string[], deps: RunOptions): Promise<number> {
  const run = new AgentRun(deps);
  const restore = run.listen();
  try {
    return await run.execute(argv);
  } finally {
    restore();
  }
}

class AgentRun {
  readonly #deps: RunOptions;
  readonly #abort = new AbortController();
  #exitCode = 0;

  constructor(deps: RunOptions) {
    this.#deps = deps;
  }

  /** The first Ctrl-C ends the command in order; a second one ends the process. */
  listen(): () => void {
    let firstMs = 0;
    const interrupt = (): void => {
      if (this.#abort.signal.aborted) {
        if (performance.now() - firstMs > SIGNAL_ECHO_MS_MAX) {
          process.exit(130);
        }
        return;
      }
      firstMs = performance.now();
      this.#abort.abort(
        new AriusError(
          'interrupted',
          'Interrupted.',
          'Run the same command again; it continues where this one stopped.',
        ),
      );
    };
    this.#deps.signal?.addEventListener('abort', interrupt, { once: true });
    if (this.#deps.signal === undefined) {
      process.on('SIGINT', interrupt);
      process.on('SIGTERM', interrupt);
    }
    return () => {
      process.off('SIGINT', interrupt);
      process.off('SIGTERM', interrupt);
      this.#deps.signal?.removeEventListener('abort', interrupt);
    };
  }

  async execute(argv: readonly string[]): Promise<number> {
    // What is wrong with the options must be told in the way the options ask for, so this one is looked for first.
    const json = argv.includes('--json');
    let output = this.#output({ json });
    const program = buildProgram({
      writeOut: (text) => this.#deps.stdout.write(text),
      // Help that is printed because something was wrong; a program that reads JSON cannot use it.
      writeErr: (text) => (json ? undefined : this.#deps.stderr.write(text)),
      run: async (options, command) => {
        output = this.#output(options);
        this.#exitCode = await command({ deps: this.#deps, output, abort: this.#abort });
      },
    });
    try {
      await program.parseAsync([...argv], { from: 'user' });
      return this.#exitCode;
    } catch (error) {
      output.endStatus();
      if (error instanceof CommanderError) {
        return this.#usageExit(error, output);
      }
      const known = this.#asAriusError(error);
      output.error(known);
      return known.exitCode;
    }
  }

  #output(options: CommonOptions): Output {
    const verbose = options.verbose === true;
    const quiet = options.quiet === true;
    const progress = options.progress !== false;
    return options.json === true
      ? new JsonOutput({ stdout: this.#deps.stdout, verbose, quiet, progress })
      : new HumanOutput({ stdout: this.#deps.stdout, stderr: this.#deps.stderr, verbose, quiet, progress });
  }

  /** Help and version are results; everything else that commander throws is wrong usage. */
  #usageExit(error: CommanderError, output: Output): number {
    if (error.exitCode === 0) {
      return 0;
    }
    const detail = error.message.replace(/^error: /, '').replace(/\.?$/, '.');
    const shown = error.code === 'commander.help' ? 'No command was given.' : detail;
    output.error(new AriusError('usage', shown, 'See --help of the command; options stand behind it.'));
    return 2;
  }

  #asAriusError(error: unknown): AriusError {
    const { reason } = this.#abort.signal;
    // What stopped the command counts, not what fell over because it stopped.
    if (reason instanceof AriusError) {
      return reason;
    }
    if (error instanceof AriusError) {
      return error;
    }
    const message = error instanceof Error ? error.message : String(error);
    if (this.#deps.env.ARIUS_DEBUG !== undefined && error instanceof Error) {
      this.#deps.stderr.write(`${error.stack}\n`);
    }
    return new AriusError(
      'internal',
      `The program made a mistake: ${message}.`,
      'Run the same command again; set ARIUS_DEBUG=1 to see where it happened, and report it.',
    );
  }
}
