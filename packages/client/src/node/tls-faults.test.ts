import type { TlsFault } from '@zabra/runtime'
import { startTlsFault, tlsFaultCases } from '@zabra/testkit/tls-fault-servers'
import { expect, it } from 'vitest'
import { connect, nodeTransport } from './index.ts'

/** What a message has to advise. */
const advice: Readonly<Record<TlsFault, RegExp>> = {
  expired: /renew it on the server, and check the clock/,
  notYetValid: /check the clocks/,
  untrusted: /set tls\.trustStore of nodeTransport/,
  wrongHost: /connect by another name/,
  wrongPurpose: /issue one for servers/,
  revoked: /issue another one/,
  noRevocationList: /tls\.revocationList/,
  damaged: /issue another one/,
  clientCertificate: /set tls\.keyStore of nodeTransport/,
  handshakeFailure: /tls\.keyStore .*tls\.versions/,
  noCommonVersion: /tls\.versions/,
  plaintext: /leave out tls:\/\/ and wss:\/\//,
  refused: /./,
}

const cases = ['tls', 'wss'].flatMap((scheme) => tlsFaultCases.map((one) => [scheme, one.name, one] as const))

/** Rejects with the error of the first attempt when it may pass, else with what `connect` rejects with. */
async function rejection(servers: string, tls: object, isPassing: boolean): Promise<Error> {
  const end = new AbortController()
  const failed = connect({
    servers,
    transport: nodeTransport({ tls }),
    connectTimeoutMs: 10_000,
    signal: end.signal,
    onAttemptFailed: () => {
      if (isPassing) end.abort()
    },
  })
  return failed.then(
    () => Promise.reject(new Error('Expected a failure, got a client')),
    (error: unknown) => error as Error,
  )
}

it.each(cases)('a client over %s names the fault of a server with %s', async (scheme, _name, one) => {
  const { reason, fault } = one
  const server = await startTlsFault(one)
  try {
    const error = await rejection(`${scheme}://localhost:${server.port}`, one.client, fault === undefined)
    const { message } = error
    expect(message).toContain(reason)
    expect(message).not.toMatch(/error:[\dA-F]{8}|SSL routines|\.c:|deps\//)
    // A code is in parentheses, if it is there at all.
    expect(message.replaceAll(/\([A-Z_\d]+\)/g, '')).not.toMatch(/[A-Z\d]+_[A-Z\d_]+/)
    if (fault === undefined) return
    expect(error).toMatchObject({ code: 'CONNECT_FAILED', cause: { tlsFailure: { fault } } })
    expect(message).toMatch(advice[fault])
  } finally {
    await server.close()
  }
})
