import type { Connection, Ports } from '@zabra/runtime'
import type { ServerSettings } from '../../settings/index.ts'
import type { ServerCore } from '../core.ts'
import { Listeners, type ClientPlace, type ServedPort } from '../listeners.ts'
import { WaitingRoom } from './waiting-room.ts'

/** What the configurations of an ensemble say of where this member serves clients. */
export interface ClientPlaces {
  /** As its operator has written it down. */
  readonly written: ClientPlace | undefined
  /** In force now. */
  readonly active: ClientPlace | undefined
}

/**
 * The ports for clients, open as long as the process lives. Whoever comes while this server has no role is told so, if it asks
 * with a four-letter word, and is sent elsewhere.
 */
export class ClientDoor {
  readonly #listeners: Listeners
  readonly #waitingRoom: WaitingRoom
  readonly #ports: Ports
  #core: ServerCore | undefined
  /** What a configuration has last said of this member. */
  #told: string
  /** Moves are made one after the other. */
  #moving: Promise<void> = Promise.resolve()

  readonly #opening: (core: ServerCore) => void

  /** `opening` prepares what serves from now on. */
  constructor(
    settings: ServerSettings,
    ports: Ports,
    { written, active }: ClientPlaces,
    opening: (core: ServerCore) => void,
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
    this.#waitingRoom = new WaitingRoom(settings, ports)
  }

  get served(): readonly ServedPort[] {
    return this.#listeners.served
  }

  /** Who serves clients now; nobody between two roles. */
  get core(): ServerCore | undefined {
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
  follow(place: ClientPlace | undefined): void {
    if (place === undefined || textOf(place) === this.#told) return
    this.#told = textOf(place)
    this.#moving = this.#moving.then(() => this.#move(place))
  }

  open(core: ServerCore): void {
    this.#opening(core)
    this.#core = core
    core.portOf = (key) => this.#listeners.portOf(key)
    core.handshakes = () => this.#listeners.handshakes
  }

  close(core: ServerCore): void {
    if (this.#core === core) this.#core = undefined
  }

  /** Reads the certificates again. */
  reload(): Promise<void> {
    return this.#listeners.reload()
  }

  /** Stops listening, for good. */
  async stop(): Promise<void> {
    this.#waitingRoom.close()
    await this.#moving
    await this.#listeners.close()
  }

  async #move(place: ClientPlace): Promise<void> {
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
    if (core === undefined) this.#waitingRoom.admit(wire)
    else core.turn(() => core.accept(wire))
  }
}

/** Every address of a machine, as configurations have it when they name none. */
const ANY = '0.0.0.0'

const textOf = (place: ClientPlace | undefined): string =>
  place === undefined ? '' : `${place.host}:${place.port}`

function placeOf({ clientPort, clientPortAddress }: ServerSettings): ClientPlace | undefined {
  return clientPort === undefined ? undefined : { host: clientPortAddress ?? ANY, port: clientPort }
}

const placed = (settings: ServerSettings, { host, port }: ClientPlace): ServerSettings => ({
  ...settings,
  clientPort: port,
  clientPortAddress: host === ANY ? undefined : host,
})
