import { nodeTransport, type NodeTransport, type TlsOptions } from '@zabra/client'

/** Connects to servers over TCP, TLS or WebSockets, by the scheme of their address, with the configured certificates. */
export class ClientTransport {
  readonly transport: NodeTransport
  /** Whether addresses without a scheme mean TLS. */
  readonly #isSecure: boolean

  constructor(tls: TlsOptions = {}, isSecure = false) {
    this.transport = nodeTransport({ tls })
    this.#isSecure = isSecure
  }

  /**
   * Loads the certificates if one of the servers needs TLS. `servers` is a connect string with schemes. Rejects with a
   * `CertificateError` that names the file when a certificate cannot be used.
   */
  async loadCertificates(servers: string): Promise<void> {
    if (this.#isSecure || /\b(?:tls|wss):\/\//.test(servers)) await this.transport.reload()
  }

  /** Adds `tls://` to servers without a scheme if TLS is the default. */
  withSchemes(servers: string): string {
    if (!this.#isSecure) return servers
    if (servers.startsWith('dns-srv://')) return servers.replace('dns-srv', 'dns-srv+tls')
    const root = /(?<![:/])\/(?!\/).*$/.exec(servers)?.[0] ?? ''
    const list = servers.slice(0, servers.length - root.length).split(',')
    return list.map((one) => (one.includes('://') ? one : `tls://${one.trim()}`)).join(',') + root
  }
}
