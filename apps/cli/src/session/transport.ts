import { nodeTransport, type NodeTransport, type TlsOptions } from '@zabra/client'

/** How servers are reached: over TCP, TLS and WebSockets by the scheme of their address, with the certificates named. */
export class ClientTransport {
  readonly transport: NodeTransport
  /** Whether servers without a scheme are reached over TLS. */
  readonly #isSecure: boolean

  constructor(tls: TlsOptions = {}, isSecure = false) {
    this.transport = nodeTransport({ tls })
    this.#isSecure = isSecure
  }

  /**
   * Reads the certificates if one of the servers, whose schemes are given, needs them. Rejects with a `CertificateError`
   * that names the file when one cannot be used.
   */
  async loadCertificates(servers: string): Promise<void> {
    if (this.#isSecure || /\b(?:tls|wss):\/\//.test(servers)) await this.transport.reload()
  }

  /** A connect string in which every server has a scheme. */
  withSchemes(servers: string): string {
    if (!this.#isSecure) return servers
    if (servers.startsWith('dns-srv://')) return servers.replace('dns-srv', 'dns-srv+tls')
    const root = /(?<![:/])\/(?!\/).*$/.exec(servers)?.[0] ?? ''
    const list = servers.slice(0, servers.length - root.length).split(',')
    return list.map((one) => (one.includes('://') ? one : `tls://${one.trim()}`)).join(',') + root
  }
}
