import type { TlsOptions } from '@zabra/runtime'
import {
  lazyTlsNetwork,
  lazyWebSocketNetwork,
  nodeNetwork,
  keepAliveNodeClock,
} from '@zabra/runtime/node/dial'
import { withPlaintextProbe } from './plaintext-probe.ts'
import { networkTransport } from '../transport.ts'
import type { Transport } from '../platform.ts'

export interface NodeTransportOptions {
  /** Trust store and key store for `tls://` and `wss://`. Default: the certificate authorities that Node trusts. */
  readonly tls?: TlsOptions | undefined
}

export interface NodeTransport extends Transport {
  /**
   * Reloads the certificate files for future connections. Resolves to whether they have changed. Rejects with a
   * `CertificateError` and keeps the current ones if they cannot be loaded.
   */
  reload(): Promise<boolean>
}

/**
 * Returns a transport over TCP, TLS and WebSockets, chosen by the scheme of the address. Modules load on the first
 * connection that needs them.
 */
export function nodeTransport({ tls = {} }: NodeTransportOptions = {}): NodeTransport {
  const secure = lazyTlsNetwork(tls)
  return {
    ...networkTransport({
      tcp: nodeNetwork,
      tls: withPlaintextProbe(secure, nodeNetwork),
      ws: lazyWebSocketNetwork({ clock: keepAliveNodeClock, pingIntervalMs: 0 }),
      wss: lazyWebSocketNetwork({
        clock: keepAliveNodeClock,
        pingIntervalMs: 0,
        client: () => secure.clientOptions(),
      }),
    }),
    reload: () => secure.reload(),
  }
}
