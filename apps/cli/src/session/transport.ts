import type { Transport } from '@zabra/client'
import type { Network, TlsNetwork, TlsOptions } from '@zabra/runtime'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'

/** How bytes get to servers: over TCP, and over TLS with the certificates that were named. */
export class Networks {
  readonly #tcp: Network
  readonly #tls: TlsNetwork | undefined
  /** Whether servers without a scheme are reached over TLS. */
  readonly isSecure: boolean

  constructor({ network, networks }: Io['ports'], tls: TlsOptions, isSecure: boolean) {
    this.#tcp = network
    this.#tls = networks?.tls?.(tls)
    this.isSecure = isSecure
  }

  /** Reads the certificates. Rejects with a `CertificateError` that names the file when one cannot be used. */
  async ready(): Promise<void> {
    if (this.isSecure) await this.#tls?.reload()
  }

  /** The network for a scheme. Throws a `UsageError` for those that there are not. */
  for(scheme: string): Network {
    const network = scheme === 'tcp' ? this.#tcp : scheme === 'tls' ? this.#tls : undefined
    if (network === undefined)
      throw new UsageError(`Expected a server as host:port or tls://host:port, got one with ${scheme}://.`)
    return network
  }

  /** A connect string in which every server has a scheme. */
  named(servers: string): string {
    if (!this.isSecure) return servers
    const root = /(?<![:/])\/(?!\/).*$/.exec(servers)?.[0] ?? ''
    const list = servers.slice(0, servers.length - root.length).split(',')
    return list.map((one) => (one.includes('://') ? one : `tls://${one.trim()}`)).join(',') + root
  }

  /** The same for a client. */
  get transport(): Transport {
    return { open: (server, signal) => this.for(server.scheme).connect(server, { signal }) }
  }
}
