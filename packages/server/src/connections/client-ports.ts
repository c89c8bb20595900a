import type { Connection, OwnCertificate, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'
import { acceptClient } from './client-connection.ts'
import type { ClientService } from './client-service.ts'
import { Listeners, type ClientAddress, type ServedPort } from './listeners.ts'
import { NotServing } from './not-serving.ts'
import type { ServerStats } from './stats.ts'

/** The client address of a member in the configurations of its ensemble. */
export interface ClientAddresses {
  /** In the configuration file of the operator. */
  readonly configured: ClientAddress | undefined
  /** In the active configuration. */
  readonly active: ClientAddress | undefined
}

/** Owns the client ports of a server, which stay open from one role to the next. Between two roles `NotServing` handles the connections. */
export class ClientPorts {
  readonly #listeners: Listeners
  readonly #notServing: NotServing
  readonly #platform: Platform
  readonly #onAttach: (service: ClientService) => void
  #service: ClientService | undefined
  #isDraining = false
  /** The client address of the last configuration, as text. */
  #address: string
  /** Resolves when the last move of a port has ended; moves run one after the other. */
  #moved: Promise<void> = Promise.resolve()

  /** `onAttach` prepares a service before it gets connections. `stats` counts the connections that are refused between two roles. */
  constructor(
    settings: ServerSettings,
    platform: Platform,
    stats: ServerStats,
    { configured, active }: ClientAddresses,
    onAttach: (service: ClientService) => void,
  ) {
    this.#onAttach = onAttach
    this.#platform = platform
    const written = textOf(configured ?? addressOf(settings))
    this.#address = written
    const moved = active !== undefined && textOf(active) !== written ? active : undefined
    if (moved !== undefined) {
      this.#address = textOf(moved)
      platform.logger.warn(
        { written, moved: this.#address },
        'A change of the ensemble has moved the client port of this server from where the configuration file has it',
      )
    }
    this.#listeners = new Listeners(moved === undefined ? settings : withAddress(settings, moved), platform)
    this.#notServing = new NotServing(settings, platform, () => stats.refusals.not_serving++)
  }

  get served(): readonly ServedPort[] {
    return this.#listeners.served
  }

  /** The certificate of the ports; undefined where none speaks TLS. */
  get certificate(): OwnCertificate | undefined {
    return this.#listeners.certificate
  }

  /** The service of the current role; undefined between two roles. */
  get service(): ClientService | undefined {
    return this.#service
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Refuses new and resumed sessions, in this role and later ones. */
  set isDraining(isDraining: boolean) {
    this.#isDraining = isDraining
    if (this.#service !== undefined) this.#service.isDraining = isDraining
  }

  /** Opens all ports. Rejects with a `NetworkError` or `CertificateError` when one cannot be opened. */
  listen(): Promise<void> {
    return this.#listeners.open((wire) => this.#accept(wire))
  }

  /**
   * Moves the client port to the address of the active configuration, if the address has changed. Connections stay. When the new
   * port cannot be opened, the old one stays open.
   */
  moveTo(address: ClientAddress | undefined): void {
    if (address === undefined || textOf(address) === this.#address) return
    this.#address = textOf(address)
    this.#moved = this.#moved.then(() => this.#move(address))
  }

  /** Accepts connections for a service from now on. */
  attach(service: ClientService): void {
    this.#onAttach(service)
    this.#service = service
    service.portStatus = this.#listeners
    service.applySettings()
    service.isDraining = this.#isDraining
  }

  detach(service: ClientService): void {
    if (this.#service === service) this.#service = undefined
  }

  /** Reads the certificate files again. */
  reload(): Promise<void> {
    return this.#listeners.reload()
  }

  /** Closes all ports for good. */
  async close(): Promise<void> {
    this.#notServing.close()
    await this.#moved
    await this.#listeners.close()
  }

  async #move(address: ClientAddress): Promise<void> {
    const { logger } = this.#platform
    try {
      await this.#listeners.moveClientPort(address)
      logger.info({ ...address }, 'The client port has moved, as the configuration says')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      logger.error({ ...address, reason }, 'The client port cannot move to where the configuration says')
    }
  }

  #accept(wire: Connection): void {
    const service = this.#service
    if (service === undefined) this.#notServing.accept(wire)
    else service.runTurn(() => acceptClient(service, wire))
  }
}

/** The host of a configuration that names none: every address of the machine. */
const ANY_HOST = '0.0.0.0'

const textOf = (address: ClientAddress | undefined): string =>
  address === undefined ? '' : `${address.host}:${address.port}`

function addressOf({ clientPort, clientPortAddress }: ServerSettings): ClientAddress | undefined {
  return clientPort === undefined ? undefined : { host: clientPortAddress ?? ANY_HOST, port: clientPort }
}

const withAddress = (settings: ServerSettings, { host, port }: ClientAddress): ServerSettings => ({
  ...settings,
  clientPort: port,
  clientPortAddress: host === ANY_HOST ? undefined : host,
})
