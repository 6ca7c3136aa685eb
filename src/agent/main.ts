/**
 * The command line. Every way out of a command ends here: an exit code, and for a failure one line with a stable code
 * and the next step.
 */

import { Command, CommanderError, Option } from 'commander';
import { AriusError } from '../errors.ts';
import type { AgentDependencies, CommandContext } from './command.ts';
import { HumanOutput } from './output/human-output.ts';
import { JsonOutput } from './output/json-output.ts';
import type { Output } from './output/output.ts';
import type { CommonOptions } from './settings.ts';
import { agentVersion } from './version.ts';

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
    const interrupt = (): void => {
      if (this.#abort.signal.aborted) {
        process.exit(130);
      }
      this.#abort.abort(
        new AriusError('interrupted', 'Interrupted.', 'Run the same command again; it continues where this one stopped.'),
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
    const program = this.#program((options) => {
      output = this.#output(options);
      return { deps: this.#deps, output, abort: this.#abort };
    }, json);
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
    output.error(new AriusError('usage', shown, 'See arius-agent --help.'));
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
    if (this.#deps.env['ARIUS_DEBUG'] !== undefined && error instanceof Error) {
      this.#deps.stderr.write(`${error.stack}\n`);
    }
    return new AriusError(
      'internal',
      `The program made a mistake: ${message}.`,
      'Run the same command again; set ARIUS_DEBUG=1 to see where it happened, and report it.',
    );
  }

  #program(prepare: (options: CommonOptions) => CommandContext, json: boolean): Command {
    const { stdout, stderr } = this.#deps;
    const program = new Command('arius-agent')
      .description(
        'Archives folders into a deduplicating repository on Azure, and gets them back.\n' +
          'Without a configured service, the embedded one is started for the time of the command.',
      )
      .version(agentVersion(), '--version', 'print the version')
      .helpOption('-h, --help', 'print this help')
      .helpCommand(false)
      .exitOverride()
      .configureOutput({
        writeOut: (text) => stdout.write(text),
        // Without a command commander prints the help as an error; all other errors are printed by us.
        writeErr: (text) => (json ? undefined : stderr.write(text)),
        outputError: () => undefined,
      })
      .showHelpAfterError(false);

    const run = (work: (context: CommandContext) => Promise<number>, options: CommonOptions): Promise<void> =>
      work(prepare(options)).then((exitCode) => {
        this.#exitCode = exitCode;
      });

    common(program.command('archive <folder>'))
      .description('archive a folder: scan, hash, upload what is new, publish a snapshot')
      .option('--source <name>', 'whose snapshots these are (default: host:folder)')
      .option('--include <glob...>', 'archive only files that match (a name, or with a slash a path; repeatable)')
      .option('--exclude <glob...>', 'leave out files and folders that match (repeatable)')
      .option('--dry-run', 'say what would be uploaded; change nothing')
      .option('--upload-limit <MiB/s>', 'upload no faster than this')
      .option('--spool <dir>', 'where bodies are prepared (default: in the state folder of the agent)')
      .option('--tier <tier>', 'hot, cool or cold (default: the one of the repository)')
      .option('--fast-hash', 'believe a sparse fingerprint of large files whose change time is new')
      .option('--rehash', 'read every file, whatever the hash cache says')
      .addHelpText('after', ARCHIVE_HELP)
      .action((folder: string, options) =>
        run(async (context) => {
          const { archiveCommand } = await import('./commands/archive-command.ts');
          return archiveCommand(context, folder, options);
        }, options),
      );
    return program;
  }
}

/** The options that every command has. */
function common(command: Command): Command {
  return command
    .option('-r, --repository <name>', 'the repository (ARIUS_REPOSITORY; default "default")')
    .option('--url <url>', 'the service (ARIUS_URL; else the stored connection; else the embedded service)')
    .option('--token <token>', 'function key or token of the service (ARIUS_TOKEN)')
    .option('--local <dir>', 'state of the embedded service (ARIUS_LOCAL_DIR; default ~/.arius-functions/local)')
    .option('--passphrase-file <file>', 'holds the passphrase of a sealed repository (ARIUS_PASSPHRASE; else asked for)')
    .option('--json', 'JSON lines on stdout')
    .option('-v, --verbose', 'say something about every file')
    .option('-q, --quiet', 'only warnings and errors')
    .addOption(new Option('--no-progress', 'no live display'));
}

const ARCHIVE_HELP = `
Running the same command again after an interruption continues where it stopped.
The repository is created when it is missing: sealed if there is a passphrase, else plain.
Exit codes: 0 done; 3 some files could not be read (listed); 4 run it again later; 12 wrong passphrase.`;
