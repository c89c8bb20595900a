/**
 * What a client needs to dial from a Node process. TCP is here; the code of TLS and WebSockets, which takes many megabytes with
 * the modules of the platform, is loaded by the first connection that wants it.
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

/** A network over TLS as `NodeTlsNetwork` is. */
export type LazyTlsNetwork = Network & Pick<TlsNetwork, 'reload'> & Pick<NodeTlsNetwork, 'clientOptions'>

/** TLS with certificates from files, whose code is loaded when it is first used. */
export function lazyTlsNetwork(options: TlsOptions): LazyTlsNetwork {
  const loaded = lazy(async () => (await import('./tls.ts')).tlsNetwork(options))
  return {
    ...lazyNetwork('TLS', loaded),
    reload: async () => (await loaded()).reload(),
    clientOptions: async () => (await loaded()).clientOptions(),
  }
}

/** WebSockets with the `ws` library, which is loaded when they are first used. */
export function lazyWebSocketNetwork(options: WebSocketNetworkOptions): Network {
  return lazyNetwork(
    'the package ws',
    lazy(async () => (await import('../ws/network.ts')).webSocketNetwork(options)),
  )
}
