import { onAbort } from './on-abort.ts'
import { aServer } from './servers/server-address.ts'
import type { Clock, Connection } from '@zabra/runtime'
import { checkArgument, shown } from './checks.ts'
import { abortError, OperationTimeoutError, UsageError } from './errors.ts'
import type { ServerAddress, Transport } from './platform.ts'
import { addressText, parseServers } from './servers/connect-string.ts'

export interface FourLetterWordOptions {
  /** Default: TCP, TLS and WebSockets, without certificates. */
  readonly transport?: Transport | undefined
  /** Milliseconds to wait for the whole reply (default 10,000). */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Bytes after which a reply is cut: a hostile server may send without end. `cons` of 100,000 connections is shorter. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

/**
 * Sends a four-letter word to one server over a connection of its own, and resolves to the reply. A server that does not
 * have the word on its whitelist says so in its reply. Rejects with an `OperationTimeoutError`, with an `AbortedError`
 * when the signal aborts, and with the error of the transport.
 */
export async function sendFourLetterWord(
  server: string | ServerAddress,
  word: string,
  { transport, clock }: { readonly transport: Transport; readonly clock: Clock },
  { timeoutMs: timeout = 10_000, signal }: FourLetterWordOptions,
): Promise<string> {
  if (typeof word !== 'string' || !/^[a-z]{4}$/.test(word))
    throw new UsageError(`Expected a word of four letters, got ${shown(word)}`)
  if (typeof server !== 'string') checkArgument('fourLetterWord', 'a server', server, aServer)
  const at = typeof server === 'string' ? onlyServerOf(server) : server
  if (at.scheme === 'ws' || at.scheme === 'wss')
    throw new UsageError(
      `Expected an address with tcp:// or tls://, got ${addressText(at)}: WebSockets carry no words`,
    )
  if (signal?.aborted) throw abortError(signal.reason, { operation: word })
  const attempt = new AbortController()
  const cancel = clock.after(timeout, 'deadline of a four-letter word', () => {
    const message = `${addressText(at)} did not answer ${word} within ${timeout} ms`
    attempt.abort(new OperationTimeoutError(message, 'OPERATION_TIMEOUT', { operation: word }))
  })
  const stopListening = onAbort(signal, () => attempt.abort(abortError(signal?.reason, { operation: word })))
  try {
    return await readReply(await transport.open(at, attempt.signal), word, attempt.signal)
  } catch (error) {
    throw attempt.signal.aborted ? attempt.signal.reason : error
  } finally {
    cancel()
    stopListening()
  }
}

function onlyServerOf(text: string): ServerAddress {
  const { servers } = parseServers(text)
  if (servers.length !== 1) throw new UsageError(`Expected one server, got ${servers.length}: ${text}`)
  return servers[0]!
}

/** Resolves to what the server sends until it closes the connection, or to the first `MAX_REPLY_BYTES` of it. */
function readReply(connection: Connection, word: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder()
    let text = ''
    let left = MAX_REPLY_BYTES
    connection.setHandler({
      data: (chunk) => {
        text += decoder.decode(chunk.subarray(0, left), { stream: true })
        left -= Math.min(left, chunk.length)
        if (left > 0) return
        resolve(text)
        connection.destroy()
      },
      drain: () => {},
      // Some servers reset the connection after their reply.
      closed: (cause) =>
        cause === undefined || (text !== '' && !signal.aborted) ? resolve(text) : reject(cause),
    })
    signal.addEventListener('abort', () => connection.destroy(signal.reason as Error), { once: true })
    if (signal.aborted) connection.destroy(signal.reason as Error)
    connection.write(new TextEncoder().encode(word))
  })
}
