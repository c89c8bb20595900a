import {
  createServer,
  DamageError,
  type EnsembleConfiguration,
  type Server,
  type ServerSettings,
} from '@zabra/server/core'
import { readLog, repairLog } from '@zabra/server/files'
import type { Disk, NetworkFactories } from '@zabra/runtime'
import type { CrashKind } from '../world/disk-image.ts'
import type { Host } from '../world/process.ts'
import type { SimulatedWorld } from '../world/world.ts'

/** The client port of every simulated server. */
export const CLIENT_PORT = 2181

/** Where clients reach a simulated server. */
export interface ServerEndpoint {
  readonly name: string
  readonly host: string
  readonly port: number
}

/** How long the supervisor waits before it restarts a server that stopped, in milliseconds. */
const SUPERVISOR_MS = 500
/**
 * Bytes of a log entry before its first byte that is never 0: damage may be reported this much before the bytes that a
 * power cut changed.
 */
const ENTRY_HEAD_BYTES = 16

/** A server that stopped, or failed to start, without being killed. */
export interface UnexpectedStop {
  readonly server: string
  readonly at: number
  readonly during: 'start' | 'service'
  readonly reason: string
  readonly code: string
}

/** A server of the simulation on its machine, across all its processes. */
export class SimulatedServer {
  readonly id: number
  readonly host: Host
  readonly stops: UnexpectedStop[] = []
  /** How often an operator truncated a log, as documented, whose sectors a power cut had reordered. */
  repairs = 0
  /** The log to truncate before the next start. */
  #damaged: string | undefined
  /** Contents of logs that were removed from the disk. */
  readonly removedLogs: Uint8Array[] = []
  server: Server | undefined
  /** Files that every disk of the machine holds, by path. */
  readonly #keptFiles = new Map<string, Uint8Array>()
  /** Called before the disk is replaced. */
  readonly onReplaceDisk: (() => void)[] = []
  /** Whether a supervisor restarts the server. */
  isSupervised = true
  readonly #world: SimulatedWorld
  /** Settings for the next start. */
  settings: ServerSettings
  /** The feature level as which the next start acts; undefined for that of the sources. */
  featureLevel: number | undefined
  /** What servers listen with, other than on the network of the world. */
  networkFactories: NetworkFactories | undefined
  /** Called when the server has stopped, or failed to start, without being killed. */
  onStop: ((stop: UnexpectedStop) => void) | undefined

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

  /** Puts a file on the disk of the machine, and on every later one. */
  keepFile(path: string, bytes: Uint8Array): void {
    this.#keptFiles.set(path, bytes)
    this.host.disk.install(path, bytes)
  }

  start(): void {
    if (this.isUp) return
    const incarnation = this.host.start()
    const damaged = this.#damaged
    this.#damaged = undefined
    const repaired =
      damaged === undefined ? Promise.resolve() : truncateDamagedLog(incarnation.platform.disk, damaged)
    const platform = { ...incarnation.platform, networkFactories: this.networkFactories }
    const options = this.featureLevel === undefined ? {} : { featureLevel: this.featureLevel }
    const begun = repaired.then(() => createServer(this.settings, platform, options))
    begun.then(
      (server) => {
        if (!incarnation.isAlive) return
        this.server = server
        server.failed.then(
          (reason) => {
            if (incarnation.isAlive && reason !== undefined) this.#stopped('service', reason)
          },
          () => {},
        )
      },
      (error: unknown) => {
        if (incarnation.isAlive) this.#stopped('start', error)
      },
    )
  }

  crash(kind: CrashKind): void {
    this.server = undefined
    this.host.crash(kind)
  }

  /**
   * Replaces the disk of the machine by an empty one with one file: the dynamic configuration of the other members.
   * `ensemble` becomes part of the server's settings.
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
    for (const callback of this.onReplaceDisk) callback()
    platter.wipe()
    platter.install(path, new TextEncoder().encode(text))
    for (const [kept, bytes] of this.#keptFiles) platter.install(kept, bytes)
    this.settings = { ...this.settings, ensemble }
    this.#world.trace(undefined, 'new disk', `${this.host.name} ${path}`)
  }

  /** Handles an error thrown by an event of this server, which would end a real process. */
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
      const { name } = this.host
      const stop = { server: name, at: this.#world.now, during, reason: message, code: codeOf(reason) }
      this.stops.push(stop)
      this.onStop?.(stop)
    }
    this.crash('kill')
    this.#world.schedule(SUPERVISOR_MS, undefined, 'supervisor', () => {
      if (this.isSupervised) this.start()
    })
  }

  /**
   * Whether a start failed on damage that only a power cut can have caused: sectors missing before others that were
   * written.
   */
  #isUnordered(reason: unknown): reason is DamageError {
    if (!(reason instanceof DamageError)) return false
    const { conditions } = this.host.disk
    const from = this.host.disk.file(reason.file)?.firstUnsyncedByte ?? Infinity
    return conditions.reordersSectors && reason.offset + ENTRY_HEAD_BYTES > from
  }
}

/** Truncates the log before the first byte that cannot be trusted, as `zabra log --repair --force` does. */
async function truncateDamagedLog(disk: Disk, file: string): Promise<void> {
  await repairLog(disk, await readLog(disk, file), { force: true })
}

/** Returns the code of the disk error among the causes of an error. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown }
    if (typeof code === 'string') return code
  }
  return ''
}
