/**
 * What a client needs to connect from a Node process. TCP is loaded at once. TLS and WebSockets, which take many megabytes with
 * the modules of Node that they use, are loaded by the first connection that needs them.
 */
import type { Network } from '../network.ts'
import type { TlsNetwork, TlsOptions } from '../tls.ts'
import type { WebSocketNetworkOptions } from '../ws/network.ts'
import { lazy, lazyNetwork } from './lazy.ts'
import type { NodeTlsNetwork } from './tls.ts'

export { CertificateError } from '../tls.ts'
export { channel, tracingChannel } from './channels.ts'
export { keepAliveNodeClock } from './clock.ts'
export { gunzipSync, gzipSync } from './gzip.ts'
export { lazyNetwork } from './lazy.ts'
export { nodeNetwork } from './network.ts'
export { lightRandom } from './random.ts'
export { resolveSrv } from './srv.ts'

/** A `NodeTlsNetwork` that is loaded lazily. */
export type LazyTlsNetwork = Network & Pick<TlsNetwork, 'reload'> & Pick<NodeTlsNetwork, 'clientOptions'>

/** TLS with certificates from files, loaded on first use. */
export function lazyTlsNetwork(options: TlsOptions): LazyTlsNetwork {
  const loaded = lazy(async () => (await import('./tls.ts')).tlsNetwork(options))
  return {
    ...lazyNetwork('TLS', loaded),
    reload: async () => (await loaded()).reload(),
    clientOptions: async () => (await loaded()).clientOptions(),
  }
}

/** WebSockets with the `ws` library, loaded on first use. */
export function lazyWebSocketNetwork(options: WebSocketNetworkOptions): Network {
  return lazyNetwork(
    'the package ws',
    lazy(async () => (await import('../ws/network.ts')).webSocketNetwork(options)),
  )
}
