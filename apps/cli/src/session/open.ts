import { connect, type Client } from '@zabra/client'
import { ExitCode, Failure } from '../exit-codes.ts'
import { isSrvName, parseServers, serverOf, srvAdvice } from './address.ts'
import type { Login } from './login.ts'
import { tlsAdvice } from './tls-advice.ts'
import type { ClientTransport } from './transport.ts'

/** Servers, identities and timeouts of a session. */
export interface SessionOptions {
  readonly server: string
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
  /** SASL login, before any request. */
  readonly login?: Login
  /** Milliseconds: session timeout, and timeout of connecting and of a request. */
  readonly timeoutMs: number
  readonly clientTransport: ClientTransport
  /** Whether a read-only server without a quorum is acceptable. */
  readonly readOnly?: boolean
}

/** Limit of requests and replies in bytes, so high that only the limit of the server applies. */
const MAX_FRAME = 0x3fff_ffff

/**
 * Opens a session on the first reachable server and adds every identity. Every request of the client has a timeout, and an
 * expired session is not replaced. Rejects with the error of each server when all have failed once. `notice` receives a line
 * when the connection is lost and when it is back.
 */
export async function openSession(
  options: SessionOptions,
  signal: AbortSignal,
  notice: (line: string) => void = () => {},
): Promise<Client> {
  const { timeoutMs, clientTransport } = options
  const servers = clientTransport.withSchemes(options.server)
  // The client looks up an SRV name, so the number of its servers is unknown here.
  const isSrv = isSrvName(servers)
  const count = isSrv ? Infinity : parseServers(servers).servers.length
  await clientTransport.loadCertificates(servers)
  // Before the timer starts: the user may have to type a password.
  const sasl = await options.login?.mechanism()
  const attempt = new AbortController()
  const reasons: string[] = []
  const errors: Error[] = []
  const abort = (): void => attempt.abort(signal.reason)
  const timer = setTimeout(() => {
    reasons.push(`No answer came within ${timeoutMs} ms from ${options.server}`)
    attempt.abort()
  }, timeoutMs)
  signal.addEventListener('abort', abort, { once: true })
  const encoder = new TextEncoder()
  try {
    const client = await connect({
      servers,
      transport: clientTransport.transport,
      sessionTimeoutMs: timeoutMs,
      timeoutMs,
      // An expired session has lost its ephemeral nodes; fail instead of replacing it silently.
      sessionExpiry: 'close',
      readOnly: options.readOnly === true,
      auth: options.auth.map(({ scheme, credential }) => ({ scheme, auth: encoder.encode(credential) })),
      ...(sasl ? { sasl } : {}),
      maxFrameBytes: MAX_FRAME,
      maxRequestBytes: MAX_FRAME,
      // The signal is the limit.
      waitForever: true,
      signal: attempt.signal,
      instrumentation: {
        attempt: ({ server, error }) => {
          const name = server.replace(/^(?:tcp|tls):../, '')
          // A user is waiting: try each server once.
          errors.push(error)
          const message = describeError(error)
          if (reasons.push(message.includes(name) ? message : `${name}: ${message}`) >= count) attempt.abort()
        },
      },
    })
    void reportConnection(client, notice)
    return client
  } catch (error) {
    signal.throwIfAborted()
    if (!attempt.signal.aborted) throw error
    // The reason of a failed SRV lookup is in the error of the client.
    if (isSrv && reasons.length === 1) reasons.push((error as Error).message)
    throw new Failure(
      `${reasons.toSorted().join('; ')}. ${adviceFor(errors, reasons, servers)}`,
      ExitCode.connection,
      {
        cause: error,
      },
    )
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** Reports lost and restored connections until the client closes. */
async function reportConnection(client: Client, notice: (line: string) => void): Promise<void> {
  let server = ''
  let isLost = false
  for await (const change of client.states()) {
    if (change.state === 'suspended') {
      isLost = true
      notice(`the connection to ${server} was lost; reconnecting`)
    }
    if (!change.state.startsWith('connected')) continue
    server = serverOf(change, server)
    if (isLost) notice(`reconnected to ${server}`)
    isLost = false
  }
}

/** Formats a connection error on one line. */
const describeError = ({ message }: Error): string =>
  message.replaceAll('tcp://', '').replace(/\s+/g, ' ').trim()

function adviceFor(errors: readonly Error[], reasons: readonly string[], servers: string): string {
  const forTls = tlsAdvice(errors)
  if (forTls !== undefined) return forTls
  if (isSrvName(servers)) return srvAdvice
  if (/\b(?:tls|wss):\/\//.test(servers) && reasons.some((reason) => reason.includes('ECONNRESET')))
    return 'Check that this is the TLS port of the server, and name a certificate that it trusts with --cert or ZABRA_CERT.'
  if (reasons.some((reason) => reason.includes('closed the connection during the handshake')))
    return 'It refuses new sessions, or is no ZooKeeper server: zabra status shows whether its disk is full or it has no quorum; its log names a limit of connections (maxClientCnxns).'
  return 'Check that a server is running there, or name another one with --server or ZABRA_SERVER.'
}
