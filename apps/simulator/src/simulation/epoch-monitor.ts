import type { EpochSample } from '../checkers/index.ts'
import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { DATA_DIR } from './settings.ts'

const SAMPLE_INTERVAL_MS = 20

/** Samples the durable epoch files of all servers. */
export class EpochMonitor {
  readonly samples: EpochSample[] = []
  readonly #world: SimulatedWorld
  readonly #servers: readonly SimulatedServer[]
  readonly #last = new Map<string, string>()

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
      const accepted = number(host.disk.durable(`${DATA_DIR}/version-2/acceptedEpoch`)?.durableBytes)
      const current = number(host.disk.durable(`${DATA_DIR}/version-2/currentEpoch`)?.durableBytes)
      const key = `${accepted} ${current}`
      if (this.#last.get(host.name) === key) continue
      this.#last.set(host.name, key)
      this.samples.push({ server: host.name, at: this.#world.now, accepted, current, isNew: false })
    }
    this.#world.schedule(SAMPLE_INTERVAL_MS, undefined, 'look at epochs', () => this.#sample())
  }
}

function number(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : Number(new TextDecoder().decode(bytes).trim())
}
