import { connect } from '@zabra/client'
import { ExitCode, Failure } from '../exit-codes.ts'
import { isSrvName, parseServers, srvAdvice } from './address.ts'
import { ClientSession } from './client-session.ts'
import type { Login } from './login.ts'
import type { ClientTransport } from './transport.ts'
import type { ZooKeeper } from './zookeeper.ts'

/** Where to connect, as whom, and how long to wait. */
export interface SessionOptions {
  readonly server: string
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
  /** Who logs in by SASL before anything else. */
  readonly login?: Login
  /** Milliseconds: the session's timeout, and how long to wait for a server and for an answer. */
  readonly timeoutMs: number
  readonly clientTransport: ClientTransport
  /** Whether a server that is cut off from its quorum will do. */
  readonly readOnly?: boolean
}

/** Longest answer and request: what a server takes is for the server to say. */
const MAX_FRAME = 0x3fff_ffff

/**
 * Opens a session on a server that answers and proves every identity. Rejects with what each server said when all have
 * been tried and none did. `notice` hears of connections that are lost and found again.
 */
export async function openSession(
  options: SessionOptions,
  signal: AbortSignal,
  notice: (line: string) => void = () => {},
): Promise<ZooKeeper> {
  const { timeoutMs, clientTransport } = options
  const named = clientTransport.withSchemes(options.server)
  // How many servers a service has is known when it has been looked up, which the client does.
  const looked = isSrvName(named)
  const count = looked ? Infinity : parseServers(named).servers.length
  await clientTransport.loadCertificates(named)
  // Before the time begins to count: a person may have to type a password.
  const sasl = await options.login?.mechanism()
  const attempt = new AbortController()
  const reasons: string[] = []
  const give = (): void => attempt.abort(signal.reason)
  const timer = setTimeout(() => {
    reasons.push(`No answer came within ${timeoutMs} ms from ${options.server}`)
    attempt.abort()
  }, timeoutMs)
  signal.addEventListener('abort', give, { once: true })
  const encoder = new TextEncoder()
  try {
    const client = await connect({
      servers: named,
      transport: clientTransport.transport,
      sessionTimeout: timeoutMs,
      // A session that has expired took its ephemeral nodes along; whoever made them is to know.
      sessionExpiry: 'close',
      readOnly: options.readOnly === true,
      auth: options.auth.map(({ scheme, credential }) => ({ scheme, auth: encoder.encode(credential) })),
      ...(sasl ? { sasl } : {}),
      maxFrame: MAX_FRAME,
      maxRequest: MAX_FRAME,
      signal: attempt.signal,
      instrumentation: {
        attempt: ({ server, error }) => {
          const name = server.replace(/^(?:tcp|tls):../, '')
          // A person waits: one round through the list is enough.
          const message = describeError(error)
          if (reasons.push(message.includes(name) ? message : `${name}: ${message}`) >= count) attempt.abort()
        },
      },
    })
    return new ClientSession(client, timeoutMs, notice)
  } catch (error) {
    signal.throwIfAborted()
    if (!attempt.signal.aborted) throw error
    // What was wrong with the look for servers, only the client knows.
    if (looked && reasons.length === 1) reasons.push((error as Error).message)
    throw new Failure(`${reasons.toSorted().join('; ')}. ${adviceFor(reasons, named)}`, ExitCode.connection, {
      cause: error,
    })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', give)
  }
}

/** Why a server could not be reached, on one line; what OpenSSL says for its own developers is left out. */
const describeError = ({ message }: Error): string =>
  message
    .replaceAll('tcp://', '')
    .replace(/: \w+:error:\w+:SSL routines:[^:]*:([^:]*):\S*\s*$/, ': $1')
    .replace(/\s+/g, ' ')
    .trim()

function adviceFor(reasons: readonly string[], servers: string): string {
  if (reasons.some((reason) => /SIGNED_CERT|UNABLE_TO_(?:GET_ISSUER|VERIFY)/.test(reason)))
    return 'Name the authority that signs its certificate with --ca or ZABRA_CA, or another server.'
  if (reasons.some((reason) => reason.includes('WRONG_VERSION_NUMBER')))
    return 'That port speaks without TLS: leave out --tls and tls://, or name its port for TLS.'
  if (reasons.some((reason) => reason.includes('ECONNRESET')) && /\b(?:tls|wss):\/\//.test(servers))
    return 'Check that this is its port for TLS, and not the plain one.'
  if (isSrvName(servers)) return srvAdvice
  return 'Check that a server runs there, or name another one with --server or ZABRA_SERVER.'
}
