import type { EpochSample } from '../checkers/index.ts'
import type { FileImage, SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { DATA_DIR } from './settings.ts'

const SAMPLE_INTERVAL_MS = 20
const ACCEPTED = `${DATA_DIR}/version-2/acceptedEpoch`
const CURRENT = `${DATA_DIR}/version-2/currentEpoch`

/** A file as it was when its number was read. */
interface ReadEpoch {
  readonly file: FileImage | undefined
  readonly durableVersion: number
  readonly epoch: number
}

const NONE: ReadEpoch = { file: undefined, durableVersion: 0, epoch: 0 }

/** Samples the durable epoch files of all servers. */
export class EpochMonitor {
  readonly samples: EpochSample[] = []
  readonly #world: SimulatedWorld
  readonly #servers: readonly SimulatedServer[]
  readonly #last = new Map<string, { accepted: ReadEpoch; current: ReadEpoch }>()

  constructor(world: SimulatedWorld, servers: readonly SimulatedServer[]) {
    this.#world = world
    this.#servers = servers
    if (servers.length > 1) this.#sample()
    for (const { host, onReplaceDisk } of servers)
      onReplaceDisk.push(() => {
        this.#last.delete(host.name)
        this.samples.push({ server: host.name, at: world.now, accepted: 0, current: 0, isNew: true })
      })
  }

  #sample(): void {
    for (const { host } of this.#servers) {
      const last = this.#last.get(host.name)
      const accepted = read(host.disk.durable(ACCEPTED), last?.accepted)
      const current = read(host.disk.durable(CURRENT), last?.current)
      if (accepted === last?.accepted && current === last.current) continue
      this.#last.set(host.name, { accepted, current })
      if (accepted.epoch === last?.accepted.epoch && current.epoch === last.current.epoch) continue
      this.samples.push({
        server: host.name,
        at: this.#world.now,
        accepted: accepted.epoch,
        current: current.epoch,
        isNew: false,
      })
    }
    this.#world.schedule(SAMPLE_INTERVAL_MS, undefined, 'look at epochs', () => this.#sample())
  }
}

/** Returns the number in a file: what was read last when the file has not changed since. */
function read(file: FileImage | undefined, last: ReadEpoch | undefined): ReadEpoch {
  if (file === undefined) return NONE
  const { durableVersion } = file
  if (last?.file === file && last.durableVersion === durableVersion) return last
  return { file, durableVersion, epoch: Number(new TextDecoder().decode(file.durableBytes).trim()) }
}
