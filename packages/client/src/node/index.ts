/** The client for Node, Deno and Bun: `connect({ servers })` needs nothing else. */
import { lightRandom, resolveSrv, keepAliveNodeClock } from '@zabra/runtime/node/dial'
import { aText, aTransport, anAbortSignal, checkOptionsOf, milliseconds } from '../checks.ts'
import { openClient, type ConnectOptions, type PlatformDefaults } from '../connect.ts'
import { recogniseProtocol } from '../session/foreign-protocol.ts'
import { ReadBatcher } from '../session/read-batcher.ts'
import { sendFourLetterWord, type FourLetterWordOptions } from '../four-letter-word.ts'
import { digestMd5With, type DigestMd5Login, type DigestMd5Options } from '../sasl.ts'
import { trackEnsemble } from '../track-ensemble.ts'
import { parseServers, type ServerList } from '../servers/connect-string.ts'
import { findBySrv, type FindServersOptions } from '../servers/srv.ts'
import type { Client } from '../client-api.ts'
import type { Platform, ServerAddress, Transport } from '../platform.ts'
import { withDiagnostics } from './diagnostics.ts'
import { explainTls } from './tls-advice.ts'
import { nodeTransport } from './transport.ts'

// What every platform has; its names are listed in core.ts.
export * from '../core.ts'
export type { FourLetterWordOptions } from '../four-letter-word.ts'
export type { FindServersOptions } from '../servers/srv.ts'
export type { ServerList } from '../servers/connect-string.ts'
export type { RequestContext } from './diagnostics.ts'
export { compressed, type CompressedOptions } from './compressed.ts'
export { nodeTransport, type NodeTransport, type NodeTransportOptions } from './transport.ts'
export { CertificateError } from '@zabra/runtime/node/dial'
export type { TlsOptions } from '@zabra/runtime'

/** SASL DIGEST-MD5 for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = (options: DigestMd5Options): DigestMd5Login => digestMd5With(lightRandom)(options)

type NodeDefaults = PlatformDefaults & { readonly transport: Transport }

const platform: Platform = { clock: keepAliveNodeClock, random: lightRandom, resolveSrv }
/**
 * Shared by all clients: the transport has no certificates of its own. Created lazily, since imports must have no
 * side effects.
 */
let defaults: NodeDefaults | undefined

/**
 * Resolves to the servers of a connect string, looking up those of `dns-srv://name`, for tools that contact each
 * server. Rejects with a `UsageError` if the string names none, and when `signal` aborts; without a signal it retries
 * until the lookup succeeds.
 */
export async function findServers(
  servers: string | readonly string[],
  options?: FindServersOptions,
): Promise<ServerList> {
  checkOptionsOf('findServers', options, { chroot: aText, signal: anAbortSignal })
  const { servers: list, chroot } =
    (await findBySrv(platform, servers, options)) ?? parseServers(servers, options?.chroot)
  return { servers: list, chroot }
}

const warn = (message: string): void =>
  process.emitWarning(message, { type: 'ZooKeeperWarning', code: 'ZABRA_NO_SERVER' })

const nodeDefaults = (): NodeDefaults =>
  (defaults ??= {
    transport: nodeTransport(),
    platform,
    findBySrv,
    Batcher: ReadBatcher,
    recogniseProtocol,
    trackEnsemble,
    warn,
    explain: explainTls,
    wrapInstrumentation: withDiagnostics,
  })

/** Opens a session and resolves when the server has granted it; see `connectWith`. */
export function connect(options: ConnectOptions): Promise<Client> {
  return openClient(options, nodeDefaults())
}

/**
 * Sends a four-letter word, such as `mntr`, to one server and resolves to the reply. A server that does not have the word
 * on its whitelist says so in its reply. Rejects with an `OperationTimeoutError`, with an `AbortedError` when the signal
 * aborts, and with the error of the transport.
 */
export async function fourLetterWord(
  server: string | ServerAddress,
  word: string,
  options: FourLetterWordOptions = {},
): Promise<string> {
  checkOptionsOf('fourLetterWord', options, {
    transport: aTransport,
    timeoutMs: milliseconds,
    signal: anAbortSignal,
  })
  const { transport = nodeDefaults().transport } = options
  return sendFourLetterWord(server, word, { transport, clock: platform.clock }, options)
}
