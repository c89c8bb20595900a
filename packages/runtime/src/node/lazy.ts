import { NetworkError, shownUrl, type AbortSignalLike, type Address, type Network } from '../network.ts'

/**
 * Returns a function that loads a value on its first call, and once. Concurrent calls share the load. After a failure the next
 * call loads again.
 */
export function lazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    }))
}

/** Returns a network that is loaded on first use. `needs` names in errors what could not be loaded. */
export function lazyNetwork(needs: string, loaded: () => Promise<Network>): Network {
  return {
    async listen(at, accepted, refused) {
      const network = await loaded()
      return network.listen(at, accepted, refused)
    },
    async connect(to, options = {}) {
      const network = await loadForConnection(loaded(), to, needs, options.signal)
      return network.connect(to, options)
    },
  }
}

/** Awaits the load for a connection, until `signal` aborts. */
function loadForConnection<T>(
  loading: Promise<T>,
  to: Address,
  needs: string,
  signal: AbortSignalLike | undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (code: string, detail: string, cause: unknown): void => {
      const target = to.url === undefined ? `${to.host}:${to.port}` : shownUrl(to.url)
      reject(new NetworkError(`Cannot connect to ${target} (${code})${detail}`, code, { cause }))
    }
    const aborted = (): void => fail('ABORT_ERR', '', signal!.reason)
    if (signal?.aborted === true) aborted()
    else signal?.addEventListener('abort', aborted, { once: true })
    const settled = (): void => signal?.removeEventListener('abort', aborted)
    loading.then(
      (value) => {
        settled()
        resolve(value)
      },
      (error: unknown) => {
        settled()
        const { code = 'ENOTSUP', message } = error as NodeJS.ErrnoException
        fail(code, `: ${needs} cannot be loaded; install what @zabra/runtime depends on (${message})`, error)
      },
    )
  })
}
