/** The commands, their options and their help. A command's code is loaded only when it is the one to run. */

import { Command } from 'commander';
import type { CommandContext } from './command.ts';
import type { CommonOptions } from './settings.ts';
import { agentVersion } from './version.ts';

export interface CommandLineHost {
  writeOut(text: string): void;
  writeErr(text: string): void;
  /** Runs a command with what its options ask for. */
  run(options: CommonOptions, command: (context: CommandContext) => Promise<number>): Promise<void>;
}

export function buildProgram(host: CommandLineHost): Command {
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
      writeOut: (text) => host.writeOut(text),
      writeErr: (text) => host.writeErr(text),
      // Every error is printed in one place, in one form.
      outputError: () => undefined,
    })
    .addHelpText('after', '\nOptions of a command: arius-agent <command> --help');
  addArchive(program, host);
  addRestore(program, host);
  addLs(program, host);
  addSnapshots(program, host);
  addServe(program, host);
  return program;
}

function addArchive(program: Command, host: CommandLineHost): void {
  const command = program
    .command('archive <folder>')
    .description('archive a folder: scan, hash, upload what is new, publish a snapshot')
    .option('--source <name>', 'whose snapshots these are (default: host:folder)')
    .option('--include <glob>', 'archive only files that match: a name, or with a slash a path (repeatable)', collect)
    .option('--exclude <glob>', 'leave out files and folders that match (repeatable)', collect)
    .option('--dry-run', 'say what would be uploaded; change nothing')
    .option('--tier <tier>', 'hot, cool or cold (default: the one of the repository, which is cool unless set)')
    .option('--upload-limit <MiB/s>', 'upload no faster than this')
    .option('--spool <dir>', 'where bodies are prepared (default: in the state folder of the agent)')
    .option('--fast-hash', 'believe a sparse fingerprint of large files whose change time is new')
    .option('--rehash', 'read every file whatever the hash cache says, and offer every filetree again');
  addCommonOptions(command)
    .addHelpText('after', ARCHIVE_HELP)
    .action((folder: string, options) =>
      host.run(options, async (context) => {
        const { archiveCommand } = await import('./commands/archive-command.ts');
        return archiveCommand(context, folder, options);
      }),
    );
}

function addRestore(program: Command, host: CommandLineHost): void {
  const command = program
    .command('restore <folder>')
    .description('restore a snapshot, or parts of it, into a folder')
    .option('--snapshot <name>', 'a name, its beginning, an index, or "latest" (default)')
    .option('--source <name>', 'whose snapshots; needed when the repository has several sources')
    .option('--path <path>', 'only this file or folder of the snapshot (repeatable)', collect)
    .option('--overwrite', 'replace local files that differ')
    .option('--dry-run', 'say what would be restored; change nothing');
  addCommonOptions(command)
    .addHelpText('after', RESTORE_HELP)
    .action((folder: string, options) =>
      host.run(options, async (context) => {
        const { restoreCommand } = await import('./commands/restore-command.ts');
        return restoreCommand(context, folder, options);
      }),
    );
}

function addLs(program: Command, host: CommandLineHost): void {
  const command = program
    .command('ls [path]')
    .description('list what a snapshot holds: time (UTC), size in bytes, path')
    .option('--snapshot <name>', 'a name, its beginning, an index, or "latest" (default)')
    .option('--source <name>', 'whose snapshots; needed when the repository has several sources')
    .option('-R, --recursive', 'also what is in folders');
  addCommonOptions(command).action((path: string | undefined, options) =>
    host.run(options, async (context) => {
      const { lsCommand } = await import('./commands/ls-command.ts');
      return lsCommand(context, path, options);
    }),
  );
}

function addSnapshots(program: Command, host: CommandLineHost): void {
  const command = program
    .command('snapshots')
    .description('list the snapshots, oldest first, with the index that --snapshot takes')
    .option('--source <name>', 'only those of this source');
  addCommonOptions(command).action((options) =>
    host.run(options, async (context) => {
      const { snapshotsCommand } = await import('./commands/snapshots-command.ts');
      return snapshotsCommand(context, options);
    }),
  );
}

function addServe(program: Command, host: CommandLineHost): void {
  const command = program
    .command('serve')
    .description('run the embedded service until Ctrl-C; other commands use it meanwhile');
  addCommonOptions(command)
    .addHelpText('after', SERVE_HELP)
    .action((options) =>
      host.run(options, async (context) => {
        const { serveCommand } = await import('./commands/serve-command.ts');
        return serveCommand(context, options);
      }),
    );
}

function addCommonOptions(command: Command): Command {
  return command
    .option('-r, --repository <name>', 'the repository (ARIUS_REPOSITORY; default "default")')
    .option('--url <url>', 'the service (ARIUS_URL; else the stored connection; else the embedded service)')
    .option('--token <token>', 'function key or token of the service (ARIUS_TOKEN)')
    .option(
      '--local <dir>',
      'use the embedded service with its state here (ARIUS_LOCAL_DIR; default ~/.arius-functions/local)',
    )
    .option(
      '--passphrase-file <file>',
      'holds the passphrase of a sealed repository (ARIUS_PASSPHRASE; else asked for)',
    )
    .option('--json', 'JSON lines on stdout')
    .option('-v, --verbose', 'say something about every file')
    .option('-q, --quiet', 'only warnings and errors')
    .option('--no-progress', 'no live display')
    .helpOption('-h, --help', 'print this help')
    .exitOverride();
}

/** Repeatable rather than "one or more values": those would swallow the folder that follows. */
function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

const ARCHIVE_HELP = `
Running the same command again after an interruption continues where it stopped.
The repository is created when it is missing: sealed if there is a passphrase, else plain.
When a filetree is missing from the repository, --rehash on the unchanged folder uploads it again.

Examples:
  arius-agent archive ~/photos
  arius-agent archive ~/photos --exclude '*.tmp' --exclude 'cache/**' --passphrase-file ~/.arius-passphrase

Exit codes: 0 done; 3 some files could not be archived (listed); 4 run it again later; 12 wrong passphrase.`;

const RESTORE_HELP = `
Every file is verified by its hash before it appears under its name. A local file that is identical stays as it is; one
that differs stays too, unless --overwrite is given. After an interruption, run the same command again: it continues.

Examples:
  arius-agent restore ./photos
  arius-agent restore ./photos --snapshot 2026-03 --path 2019/summer --path index.html

Exit codes: 0 done; 3 some files could not be restored (listed); 4 waiting for rehydration; 10 no such snapshot.`;

const SERVE_HELP = `
With --json, one line is printed when it is ready: {messageType:"ready", url, portalUrl, storage, stateDir}.
The embedded service is a place to try things and to test; do not keep the only copy of anything in it.`;
