import type { TlsOptions } from '@zabra/runtime'
import {
  lazyTlsNetwork,
  lazyWebSocketNetwork,
  nodeNetwork,
  keepAliveNodeClock,
} from '@zabra/runtime/node/dial'
import { networkTransport } from '../transport.ts'
import type { Transport } from '../types.ts'

export interface NodeTransportOptions {
  /** Whom to trust and what to show over `tls://` and `wss://`. Without it, the authorities that Node trusts. */
  readonly tls?: TlsOptions
}

export interface NodeTransport extends Transport {
  /**
   * Reads the certificate files again, for the connections to come. Resolves to whether they have changed; rejects with a
   * `CertificateError`, and goes on with what it has.
   */
  reload(): Promise<boolean>
}

/** TCP, TLS and WebSockets of this machine, by the scheme of the address. What one of them needs is loaded when it is dialled. */
export function nodeTransport({ tls = {} }: NodeTransportOptions = {}): NodeTransport {
  const secure = lazyTlsNetwork(tls)
  return {
    ...networkTransport({
      tcp: nodeNetwork,
      tls: secure,
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
