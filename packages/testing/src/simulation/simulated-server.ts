import {
  createServer,
  DamageError,
  type EnsembleConfiguration,
  type Server,
  type ServerSettings,
} from '@zabra/server'
import { readLog, repairLog } from '@zabra/server/files'
import type { Disk } from '@zabra/runtime'
import type { CrashKind, Host } from '../world/process.ts'
import type { SimulatedWorld } from '../world/world.ts'

/** Where every simulated server listens for clients. */
export const CLIENT_PORT = 2181

/** Where clients reach a simulated server. */
export interface ServerEndpoint {
  readonly name: string
  readonly host: string
  readonly port: number
}

/** How long a supervisor waits before it starts a server again that has ended by itself. */
const SUPERVISOR_MS = 500
/** Bytes of an entry before the first that is never 0: a place may be told of as damaged so much before what a power cut changed. */
const ENTRY_HEAD_BYTES = 16

/** Why a server ended or did not begin, when nobody had killed it. */
export interface UnexpectedStop {
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
  readonly stops: UnexpectedStop[] = []
  /** How often an operator cut a log, as documented, that a power cut had left with sectors in no order. */
  repairs = 0
  /** The log to be cut before the next start. */
  #damaged: string | undefined
  /** Logs that are gone from its disk. */
  readonly removedLogs: Uint8Array[] = []
  server: Server | undefined
  /** Called before its disk is taken away. */
  readonly onReplaceDisk: (() => void)[] = []
  /** Whether a supervisor starts it again. */
  isSupervised = true
  readonly #world: SimulatedWorld
  /** What its next process starts with. */
  settings: ServerSettings

  constructor(world: SimulatedWorld, host: Host, id: number, settings: ServerSettings) {
    this.#world = world
    this.host = host
    this.id = id
    this.settings = settings
    host.disk.onRemove = (path, bytes) => {
      if (/\/version-2\/log\.[0-9a-f]+$/.test(path)) this.removedLogs.push(bytes.slice())
    }
  }

  get address(): ServerEndpoint {
    return { name: this.host.name, host: this.host.name, port: CLIENT_PORT }
  }
  get isUp(): boolean {
    return this.host.current !== undefined
  }

  start(): void {
    if (this.isUp) return
    const life = this.host.start()
    const damaged = this.#damaged
    this.#damaged = undefined
    const repaired = damaged === undefined ? Promise.resolve() : truncateDamagedLog(life.ports.disk, damaged)
    const begun = repaired.then(() => createServer(this.settings, life.ports))
    begun.then(
      (server) => {
        if (!life.isAlive) return
        this.server = server
        server.failed.then(
          (reason) => {
            if (life.isAlive && reason !== undefined) this.#stopped('service', reason)
          },
          () => {},
        )
      },
      (error: unknown) => {
        if (life.isAlive) this.#stopped('start', error)
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
    const { disk: platter } = this.host
    for (const heard of this.onReplaceDisk) heard()
    platter.wipe()
    platter.install(path, new TextEncoder().encode(text))
    this.settings = { ...this.settings, ensemble }
    this.#world.trace(undefined, 'new disk', `${this.host.name} ${path}`)
  }

  /** An error came out of one of its events: a real process would end. */
  handleError(error: unknown): void {
    this.#stopped('service', error)
  }

  #stopped(during: UnexpectedStop['during'], reason: unknown): void {
    const message = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
    if (during === 'start' && this.#isUnordered(reason)) {
      this.#damaged = reason.file
      this.repairs++
      this.#world.trace(undefined, 'cuts', `${this.host.name} ${message}`)
    } else {
      this.stops.push({
        server: this.host.name,
        at: this.#world.now,
        during,
        reason: message,
        code: codeOf(reason),
      })
    }
    this.crash('kill')
    this.#world.schedule(SUPERVISOR_MS, undefined, 'supervisor', () => {
      if (this.isSupervised) this.start()
    })
  }

  /** Whether a start refuses what nothing but a power cut has made of a log: sectors behind others that never came. */
  #isUnordered(reason: unknown): reason is DamageError {
    if (!(reason instanceof DamageError)) return false
    const { conditions } = this.host.disk
    const from = this.host.disk.file(reason.file)?.firstUnsyncedByte ?? Infinity
    return conditions.reordersSectors && reason.offset + ENTRY_HEAD_BYTES > from
  }
}

/** What `zabra log --repair --force` does: the log ends before the first byte that cannot be trusted. */
async function truncateDamagedLog(disk: Disk, file: string): Promise<void> {
  await repairLog(disk, await readLog(disk, file), { force: true })
}

/** The code of a failed disk call, however deep it lies. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown }
    if (typeof code === 'string') return code
  }
  return ''
}
