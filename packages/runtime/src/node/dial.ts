/**
 * What a client needs to dial from a Node process. TCP is here; the code of TLS and WebSockets, which takes many megabytes with
 * the modules of the platform, is loaded by the first connection that wants it.
 */
import type { Network } from '../network.ts'
import type { TlsNetwork, TlsOptions } from '../secure.ts'
import type { WebSocketNetworkOptions } from '../ws/network.ts'
import { late, lateNetwork } from './late.ts'
import type { NodeTlsNetwork } from './tls.ts'

export { CertificateError } from '../secure.ts'
export { channel, tracingChannel } from './channels.ts'
export { wakefulNodeClock } from './clock.ts'
export { gunzipNow, gzipNow } from './gzip.ts'
export { lateNetwork } from './late.ts'
export { nodeNetwork } from './network.ts'
export { lightRandom } from './random.ts'
export { nodeServices } from './services.ts'

/** A network over TLS as `NodeTlsNetwork` is. */
export type LateTlsNetwork = Network & Pick<TlsNetwork, 'reload'> & Pick<NodeTlsNetwork, 'clientOptions'>

/** TLS with certificates from files, whose code is loaded when it is first used. */
export function lateTlsNetwork(options: TlsOptions): LateTlsNetwork {
  const loaded = late(async () => (await import('./tls.ts')).tlsNetwork(options))
  return {
    ...lateNetwork('TLS', loaded),
    reload: async () => (await loaded()).reload(),
    clientOptions: async () => (await loaded()).clientOptions(),
  }
}

/** WebSockets with the `ws` library, which is loaded when they are first used. */
export function lateWebSocketNetwork(options: WebSocketNetworkOptions): Network {
  return lateNetwork(
    'the package ws',
    late(async () => (await import('../ws/network.ts')).webSocketNetwork(options)),
  )
}
