import { createServer, type EnsembleConfiguration, type Server, type ServerSettings } from '@zabra/server'
import type { ServerPlace } from '../workload/session-client.ts'
import type { CrashKind, Host } from '../world/process.ts'
import type { World } from '../world/world.ts'

export const CLIENT_PORT = 2181
/** How long a supervisor waits before it starts a server again that has ended by itself. */
const SUPERVISOR_MS = 500

/** Why a server ended or did not begin, when nobody had killed it. */
export interface Stop {
  readonly server: string
  readonly at: number
  readonly during: 'start' | 'service'
  readonly reason: string
  readonly code: string
}

/** A server of the simulation on its machine, over all its processes. */
export class SimulatedServer {
  readonly id: number
  readonly host: Host
  readonly stops: Stop[] = []
  /** Logs that are gone from its disk. */
  readonly gone: Uint8Array[] = []
  server: Server | undefined
  /** Called before its disk is taken away. */
  readonly beforeNewDisk: (() => void)[] = []
  /** Whether a supervisor starts it again. */
  supervised = true
  readonly #world: World
  /** What its next process starts with. */
  settings: ServerSettings

  constructor(world: World, host: Host, id: number, settings: ServerSettings) {
    this.#world = world
    this.host = host
    this.id = id
    this.settings = settings
    host.platter.onGone = (path, bytes) => {
      if (/\/version-2\/log\.[0-9a-f]+$/.test(path)) this.gone.push(bytes.slice())
    }
  }

  get place(): ServerPlace {
    return { name: this.host.name, host: this.host.name, port: CLIENT_PORT }
  }
  get isUp(): boolean {
    return this.host.current !== undefined
  }

  start(): void {
    if (this.isUp) return
    const life = this.host.start()
    createServer(this.settings, life.ports).then(
      (server) => {
        if (!life.alive) return
        this.server = server
        server.failed.then(
          (reason) => {
            if (life.alive && reason !== undefined) this.#stopped('service', reason)
          },
          () => {},
        )
      },
      (error: unknown) => {
        if (life.alive) this.#stopped('start', error)
      },
    )
  }

  crash(kind: CrashKind): void {
    this.server = undefined
    this.host.crash(kind)
  }

  /**
   * Its machine gets an empty disk, with one file: the configuration that others have. `ensemble` is what its operator writes
   * into its settings.
   */
  replaceDisk({
    path,
    text,
    ensemble,
  }: {
    path: string
    text: string
    ensemble: EnsembleConfiguration
  }): void {
    this.crash('power')
    const { platter } = this.host
    for (const heard of this.beforeNewDisk) heard()
    platter.wipe()
    platter.install(path, new TextEncoder().encode(text))
    this.settings = { ...this.settings, ensemble }
    this.#world.note(undefined, 'new disk', `${this.host.name} ${path}`)
  }

  /** An error came out of one of its events: a real process would end. */
  threw(error: unknown): void {
    this.#stopped('service', error)
  }

  #stopped(during: Stop['during'], reason: unknown): void {
    const message = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
    this.stops.push({
      server: this.host.name,
      at: this.#world.now,
      during,
      reason: message,
      code: codeOf(reason),
    })
    this.crash('kill')
    this.#world.later(SUPERVISOR_MS, undefined, 'supervisor', () => {
      if (this.supervised) this.start()
    })
  }
}

/** The code of a failed disk call, however deep it lies. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown }
    if (typeof code === 'string') return code
  }
  return ''
}
