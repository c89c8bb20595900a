import { ZooKeeperClient } from './client.ts'
import { checkOptions } from './options.ts'
import { UsageError } from './errors.ts'
import { firstConnection } from './first-connection.ts'
import { parseServers } from './servers/connect-string.ts'
import type { findBySrv } from './servers/srv.ts'
import type { ExplainError, RecogniseProtocol } from './session/connect-failure.ts'
import type { SessionOptions } from './session/options.ts'
import type { ReadBatcher } from './session/read-batcher.ts'
import { Session } from './session/session.ts'
import type { trackEnsemble } from './track-ensemble.ts'
import { checkSchemes } from './transport.ts'
import type { Client } from './client-api.ts'
import type { ClientOptions } from './client-options.ts'
import type { Instrumentation } from './instrumentation.ts'
import type { Platform, Transport } from './platform.ts'
import type { AuthInfo, RetryPolicy } from './types.ts'

export type ConnectOptions = ClientOptions & {
  /** Aborts connecting. */
  readonly signal?: AbortSignal | undefined
}

/** What a client uses where its options give nothing. */
export interface ConnectDefaults {
  readonly transport?: Transport | undefined
  readonly platform: Platform
  /** Shows a warning of the process. */
  readonly warn?: ((message: string) => void) | undefined
}

/** The defaults of an entry point for its platform. */
export interface PlatformDefaults extends ConnectDefaults {
  /** Returns why every attempt would fail with an error of the transport; undefined for errors that may pass. */
  readonly explain?: ExplainError | undefined
  readonly recogniseProtocol?: RecogniseProtocol | undefined
  /** Carries out `trackEnsemble`. Absent where there is no TCP, which the option needs. */
  readonly trackEnsemble?: typeof trackEnsemble | undefined
  /** Makes batches for `batchReads`. Absent where the option is refused, so that pages do not load the code. */
  readonly Batcher?: typeof ReadBatcher | undefined
  /** Looks up servers given as `dns-srv://name`. Absent where there is no DNS, so that pages do not load the code. */
  readonly findBySrv?: typeof findBySrv | undefined
  /** Wraps the instrumentation of the user with that of the platform. */
  readonly wrapInstrumentation?: (hooks: Instrumentation | undefined) => Instrumentation
}

const NO_AUTH: readonly AuthInfo[] = []
const RETRY_WITHOUT_LIMIT: RetryPolicy = {}
const DEFAULT_BATCH_SIZE = 64
const CONNECT_TIMEOUT_MS = 30_000

/**
 * Opens a session and resolves when the server has granted it. Retries for `connectTimeoutMs`, then rejects with an
 * `OperationTimeoutError` that has the last failure. Rejects at once with a `ConnectFailedError` when no attempt at any
 * server can succeed, with a `UsageError` for invalid options, with an `AuthFailedError`, with a `SessionExpiredError`
 * (for a given session with `sessionExpiry: 'close'`), and when the signal aborts.
 */
export async function openClient(options: ConnectOptions, defaults: PlatformDefaults): Promise<Client> {
  checkOptions(options)
  const transport = options.transport ?? defaults.transport
  if (transport === undefined) throw new UsageError('Expected a transport: this entry point has no default')
  const { signal } = options
  const platform =
    options.platform === undefined ? defaults.platform : { ...defaults.platform, ...options.platform }
  const { waitForever = false, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options
  if (waitForever && options.connectTimeoutMs !== undefined)
    throw new UsageError('Expected waitForever or connectTimeoutMs, got both', { operation: 'connect' })
  const timeoutMs = waitForever ? undefined : connectTimeoutMs
  const end = platform.clock.monotonic() + connectTimeoutMs
  // One limit for all steps.
  const leftMs = (): number | undefined =>
    waitForever ? undefined : Math.max(0, end - platform.clock.monotonic())
  const found = await defaults.findBySrv?.(platform, options.servers, { ...options, timeoutMs })
  const { servers, chroot } = found ?? parseServers(options.servers, options.chroot)
  checkSchemes(servers, transport.schemes)
  if (options.trackEnsemble && servers.some(({ scheme }) => scheme !== 'tcp')) {
    throw new UsageError(
      'Expected trackEnsemble with plain TCP addresses: the configuration of an ensemble names no others',
    )
  }
  const complete = shareOptions({
    servers,
    transport,
    platform,
    clock: platform.clock,
    random: platform.random,
    sessionTimeoutMs: options.sessionTimeoutMs ?? 30_000,
    sessionExpiry: options.sessionExpiry ?? 'renew',
    readOnly: options.readOnly ?? false,
    auth: options.auth ?? NO_AUTH,
    sasl: options.sasl,
    timeoutMs: options.timeoutMs,
    retry: options.retry ?? RETRY_WITHOUT_LIMIT,
    chroot,
    errorPolicy: options.errorPolicy ?? 'connection',
    offlineQueue: options.offlineQueue ?? 10_000,
    maxFrameBytes: options.maxFrameBytes ?? 4 * 1024 * 1024,
    maxRequestBytes: options.maxRequestBytes ?? 1024 * 1024 - 1024,
    batchReads: maxBatchedReads(options.batchReads),
    instrumentation: defaults.wrapInstrumentation?.(options.instrumentation) ?? options.instrumentation,
    callerStacks: options.callerStacks ?? false,
    redactPath: options.redactPath,
    onAttemptFailed: options.onAttemptFailed,
    explain: defaults.explain,
    recogniseProtocol: defaults.recogniseProtocol,
  })
  if (complete.batchReads > 0 && defaults.Batcher === undefined)
    throw new UsageError('Expected no batchReads: the client for pages has none, connectWith has')
  const session = new Session(complete, defaults.Batcher, options.session)
  const client = new ZooKeeperClient(session, chroot, true)
  await firstConnection(session, platform.clock, {
    signal,
    timeoutMs,
    leftMs: leftMs(),
    warn: defaults.warn,
  })
  try {
    if (options.createChroot && chroot !== '')
      await client.createMissing([{ path: '/', mode: 'container' }], { signal, timeoutMs: leftMs() })
  } catch (error) {
    await client.close()
    throw error
  }
  found?.follow(session)
  if (options.trackEnsemble) void defaults.trackEnsemble?.(client)
  return client
}

/** Returns the maximum number of reads in a batch, 0 when batching is off. */
function maxBatchedReads(batchReads: ClientOptions['batchReads']): number {
  if (batchReads === undefined || batchReads === false) return 0
  return batchReads === true ? DEFAULT_BATCH_SIZE : (batchReads.maxReads ?? DEFAULT_BATCH_SIZE)
}

let latestOptions: WeakRef<SessionOptions> | undefined
let optionNames: (keyof SessionOptions)[] | undefined

/**
 * Returns the options object of the previous client if all values are equal: a process may hold thousands of clients
 * with the same options.
 */
function shareOptions(options: SessionOptions): SessionOptions {
  const previous = latestOptions?.deref()
  optionNames ??= Object.keys(options) as (keyof SessionOptions)[]
  if (previous !== undefined && optionNames.every((name) => options[name] === previous[name])) return previous
  latestOptions = new WeakRef(options)
  return options
}
