import type { Connection, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'
import { acceptClient } from './client-connection.ts'
import type { ClientService } from './client-service.ts'
import { Listeners, type ClientAddress, type ServedPort } from './listeners.ts'
import { NotServing } from './not-serving.ts'

/** What the configurations of an ensemble say of where this member serves clients. */
export interface ClientAddresses {
  /** As its operator has written it down. */
  readonly configured: ClientAddress | undefined
  /** In force now. */
  readonly active: ClientAddress | undefined
}

/**
 * The ports for clients, open as long as the process lives. Whoever comes while this server has no role is told so, if it asks
 * with a four-letter word, and is sent elsewhere.
 */
export class ClientPorts {
  readonly #listeners: Listeners
  readonly #waitingRoom: NotServing
  readonly #ports: Platform
  #core: ClientService | undefined
  /** What a configuration has last said of this member. */
  #told: string
  /** Moves are made one after the other. */
  #moving: Promise<void> = Promise.resolve()

  readonly #opening: (core: ClientService) => void

  /** `opening` prepares what serves from now on. */
  constructor(
    settings: ServerSettings,
    ports: Platform,
    { configured: written, active }: ClientAddresses,
    opening: (core: ClientService) => void,
  ) {
    this.#opening = opening
    this.#ports = ports
    this.#told = textOf(written ?? placeOf(settings))
    const moved = active !== undefined && textOf(active) !== this.#told ? active : undefined
    if (moved !== undefined) {
      this.#told = textOf(moved)
      ports.logger.warn(
        { written: textOf(written ?? placeOf(settings)), moved: this.#told },
        'A change of the ensemble has moved the client port of this server from where the configuration file has it',
      )
    }
    this.#listeners = new Listeners(moved === undefined ? settings : placed(settings, moved), ports)
    this.#waitingRoom = new NotServing(settings, ports)
  }

  get served(): readonly ServedPort[] {
    return this.#listeners.served
  }

  /** Who serves clients now; nobody between two roles. */
  get service(): ClientService | undefined {
    return this.#core
  }

  /** Rejects with a `NetworkError` or `CertificateError` when a port cannot be had. */
  listen(): Promise<void> {
    return this.#listeners.open((wire) => this.#accept(wire))
  }

  /**
   * Serves clients where the configuration in force says, once it says something new. Connections stay. While the new port
   * cannot be had, the old one goes on.
   */
  moveTo(place: ClientAddress | undefined): void {
    if (place === undefined || textOf(place) === this.#told) return
    this.#told = textOf(place)
    this.#moving = this.#moving.then(() => this.#move(place))
  }

  attach(core: ClientService): void {
    this.#opening(core)
    this.#core = core
    core.portStatus = this.#listeners
  }

  detach(core: ClientService): void {
    if (this.#core === core) this.#core = undefined
  }

  /** Reads the certificates again. */
  reload(): Promise<void> {
    return this.#listeners.reload()
  }

  /** Stops listening, for good. */
  async close(): Promise<void> {
    this.#waitingRoom.close()
    await this.#moving
    await this.#listeners.close()
  }

  async #move(place: ClientAddress): Promise<void> {
    const { logger } = this.#ports
    try {
      await this.#listeners.moveClientPort(place)
      logger.info({ ...place }, 'The client port has moved, as the configuration says')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      logger.error({ ...place, reason }, 'The client port cannot move to where the configuration says')
    }
  }

  #accept(wire: Connection): void {
    const core = this.#core
    if (core === undefined) this.#waitingRoom.accept(wire)
    else core.runTurn(() => acceptClient(core, wire))
  }
}

/** Every address of a machine, as configurations have it when they name none. */
const ANY = '0.0.0.0'

const textOf = (place: ClientAddress | undefined): string =>
  place === undefined ? '' : `${place.host}:${place.port}`

function placeOf({ clientPort, clientPortAddress }: ServerSettings): ClientAddress | undefined {
  return clientPort === undefined ? undefined : { host: clientPortAddress ?? ANY, port: clientPort }
}

const placed = (settings: ServerSettings, { host, port }: ClientAddress): ServerSettings => ({
  ...settings,
  clientPort: port,
  clientPortAddress: host === ANY ? undefined : host,
})
