/**
 * The messages between the host and the programming model of `@azure/functions`, as far as the host uses them. They
 * mirror the members of `@azure/functions-core`, the module that only a host provides.
 */

export interface RpcHttp {
  readonly method?: string;
  readonly url?: string;
  readonly nullableHeaders?: Readonly<Record<string, { value: string }>>;
  readonly nullableQuery?: Readonly<Record<string, { value: string }>>;
  readonly nullableParams?: Readonly<Record<string, { value: string }>>;
  readonly statusCode?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly RpcCookie[];
  readonly body?: RpcData | null;
}

/** `Data` members that are null or absent mean "not set", as in the protocol buffers they come from. */
export interface RpcCookie {
  readonly name: string;
  readonly value: string;
  readonly domain?: { value?: string } | null;
  readonly path?: { value?: string } | null;
  readonly expires?: { value?: { seconds?: number } } | null;
  readonly secure?: { value?: boolean } | null;
  readonly httpOnly?: { value?: boolean } | null;
  readonly sameSite?: string;
  readonly maxAge?: { value?: number } | null;
}

export interface RpcData {
  readonly string?: string;
  readonly json?: string;
  readonly bytes?: Uint8Array;
  readonly int?: number;
  readonly double?: number;
  readonly http?: RpcHttp;
}

export interface Binding {
  readonly type: string;
  readonly direction: 'in' | 'out';
  readonly [property: string]: unknown;
}

export interface FunctionMetadata {
  readonly name: string;
  readonly bindings: Readonly<Record<string, Binding>>;
  readonly retryOptions?: unknown;
}

export type FunctionCallback = (...args: unknown[]) => unknown;
export type HookCallback = (context: Record<string, unknown>) => unknown;

export interface InvocationRequest {
  readonly invocationId: string;
  readonly functionId: string;
  readonly inputData: readonly { readonly name: string; readonly data: RpcData }[];
  readonly triggerMetadata: Readonly<Record<string, RpcData>>;
  readonly traceContext: Readonly<Record<string, unknown>>;
}

export interface InvocationResponse {
  readonly outputData?: readonly { readonly name: string; readonly data: RpcData }[];
  readonly returnValue?: RpcData | null;
}

export interface InvocationModel {
  getArguments(): Promise<{ context: unknown; inputs: unknown[] }>;
  invokeFunction(context: unknown, inputs: unknown[], callback: FunctionCallback): Promise<unknown>;
  getResponse(context: unknown, result: unknown): Promise<InvocationResponse>;
}

export interface ProgrammingModel {
  readonly name: string;
  readonly version: string;
  getInvocationModel(coreContext: Record<string, unknown>): InvocationModel | Promise<InvocationModel>;
  getCapabilities(capabilities: Record<string, string>): Promise<Record<string, string>>;
}
