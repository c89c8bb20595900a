import type { TlsOptions } from '@zabra/runtime'
import {
  lazyTlsNetwork,
  lazyWebSocketNetwork,
  nodeNetwork,
  keepAliveNodeClock,
} from '@zabra/runtime/node/dial'
import { withPlaintextProbe } from './plaintext-probe.ts'
import {
  anObject,
  aText,
  checkOptionsOf,
  milliseconds,
  oneOf,
  text,
  trueOrFalse,
  whole,
  type Rule,
} from '../checks.ts'
import { networkTransport } from '../transport.ts'
import type { Transport } from '../platform.ts'

const file: Rule = [
  'an object with the path of a file',
  (value) => text((value as { path?: unknown } | null)?.path),
]
const words: Rule = ['a list of strings', (value) => Array.isArray(value) && value.every(text)]

const tlsRules: { readonly [K in keyof Required<TlsOptions>]: Rule } = {
  keyStore: file,
  trustStore: file,
  revocationList: aText,
  versions: words,
  ciphers: words,
  clientAuth: oneOf('none', 'want', 'need'),
  verifyHostName: trueOrFalse,
  identifiesServer: trueOrFalse,
  handshakeLimit: ['a whole number from 0', whole(0)],
  replacesHandshakes: trueOrFalse,
  handshakeTimeoutMs: milliseconds,
}

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
export function nodeTransport(options: NodeTransportOptions = {}): NodeTransport {
  checkOptionsOf('nodeTransport', options, { tls: anObject })
  const { tls = {} } = options
  checkOptionsOf('nodeTransport, tls', tls, tlsRules)
  const secure = lazyTlsNetwork(tls)
  return {
    ...networkTransport({
      tcp: nodeNetwork,
      tls: withPlaintextProbe(secure, nodeNetwork, keepAliveNodeClock),
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
