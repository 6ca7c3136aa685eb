/** Asks for a passphrase on a terminal, without showing it. */

import type { ReadStream } from 'node:tty';
import { AriusError } from '../errors.ts';
import type { TextStream } from './output/output.ts';

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const BACKSPACES: ReadonlySet<string> = new Set(['\u007f', '\b']);

export type PromptInput = Pick<ReadStream, 'isTTY' | 'setRawMode' | 'resume' | 'pause' | 'on' | 'off' | 'setEncoding'>;

export function promptPassphrase(question: string, input: PromptInput, output: TextStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let typed: string[] = [];
    function end(): void {
      input.off('data', onData);
      input.setRawMode(false);
      input.pause();
      output.write('\n');
    }
    function onData(text: string): void {
      for (const character of text) {
        if (character === CTRL_C || (character === CTRL_D && typed.length === 0)) {
          end();
          reject(new AriusError('interrupted', 'No passphrase was given.', 'Run the same command again.'));
          return;
        }
        if (character === '\r' || character === '\n' || character === CTRL_D) {
          end();
          resolve(typed.join(''));
          return;
        }
        typed = BACKSPACES.has(character) ? typed.slice(0, -1) : [...typed, character];
      }
    }
    output.write(question);
    input.setEncoding('utf8');
    input.setRawMode(true);
    input.resume();
    input.on('data', onData);
  });
}
