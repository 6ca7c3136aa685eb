/** What parent and child tell each other over the pipe between them. Its end means that the other has died. */

export interface StartMessage {
  readonly type: 'start';
  readonly appDirectory: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly stateDirectory: string | undefined;
  readonly port: number;
}

export interface StopMessage {
  readonly type: 'stop';
}

export type ChildMessage =
  | { readonly type: 'waiting' }
  | { readonly type: 'ready'; readonly port: number; readonly masterKey: string; readonly functionKey: string }
  | { readonly type: 'failed'; readonly reason: string };
