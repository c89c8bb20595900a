import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Clock,
  type Connection,
  type Network,
} from '@zabra/runtime'

/** Most addresses whose answer is kept. */
const MAX_KEPT = 64
/** Time for which an answer is kept, in milliseconds: a server may be started again with or without TLS. */
const KEPT_MS = 60_000

/**
 * Returns a network over TLS that says so when a port has no TLS. A ZooKeeper server closes a connection whose first bytes are a
 * TLS handshake, as a server does that is just stopping. A four-letter word over `plain` tells the two apart; what an
 * address has answered is kept for a minute.
 */
export function withPlaintextProbe<N extends Network>(
  secure: N,
  plain: Network,
  clock: Pick<Clock, 'monotonic'>,
): N {
  const answers = new Map<string, { readonly isText: boolean; readonly until: number }>()
  const answersInPlaintext = async (to: Address, signal: AbortSignalLike | undefined): Promise<boolean> => {
    const key = `${to.host}:${to.port}`
    const known = answers.get(key)
    if (known !== undefined && clock.monotonic() < known.until) return known.isText
    const answer = await hasWords(plain, to, signal)
    // An attempt that was aborted has learned nothing for later ones.
    if (answer === undefined) return false
    if (answers.size >= MAX_KEPT) answers.clear()
    answers.set(key, { isText: answer, until: clock.monotonic() + KEPT_MS })
    return answer
  }
  return {
    ...secure,
    async connect(to: Address, options?: { signal?: AbortSignalLike }): Promise<Connection> {
      try {
        return await secure.connect(to, options)
      } catch (error) {
        if (!(error instanceof NetworkError) || error.code !== 'ECONNRESET') throw error
        if (!(await answersInPlaintext(to, options?.signal))) throw error
        const reason = 'it answers without TLS'
        throw new NetworkError(`Cannot connect to ${to.host}:${to.port} (EPROTO): ${reason}`, 'EPROTO', {
          cause: error,
          tlsFailure: { code: 'EPROTO', fault: 'plaintext', reason },
        })
      }
    },
  }
}

/** Whether a server answers a four-letter word, with its answer or with the reason why it has none; undefined when that is not known. */
async function hasWords(
  network: Network,
  to: Address,
  signal: AbortSignalLike | undefined,
): Promise<boolean | undefined> {
  let connection: Connection
  try {
    connection = await network.connect(to, signal === undefined ? {} : { signal })
  } catch {
    return undefined
  }
  return new Promise((resolve) => {
    const done = (isText?: boolean): void => {
      signal?.removeEventListener('abort', aborted)
      connection.destroy()
      resolve(isText)
    }
    const aborted = (): void => done()
    signal?.addEventListener('abort', aborted, { once: true })
    connection.setHandler({
      data: (chunk) => done(/^(?:imok|ruok)/.test(new TextDecoder().decode(chunk.subarray(0, 4)))),
      drain() {},
      closed: () => done(false),
    })
    connection.write(new TextEncoder().encode('ruok'))
  })
}
