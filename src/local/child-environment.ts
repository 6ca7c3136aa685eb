/**
 * What a child of ours needs of our environment. Anything else stays here: a passphrase or a token among it would be
 * readable in the child's environment for as long as it runs.
 */

const INHERITED =
  /^(PATH|HOME|USER|TMPDIR|TEMP|TMP|LANG|LC_.*|TZ|SystemRoot|SystemDrive|ComSpec|APPDATA|USERPROFILE)$/i;

export function childEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => INHERITED.test(name)));
}
