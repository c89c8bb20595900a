import type { Prng, SimulatedConnection, SimulatedWorld } from '@zabra/testing'
import { PORTS, type StrangerPort } from './ports.ts'

/** Chunks that are remembered for each port. */
const KEPT = 48

/** Records what servers send to the ports of other servers, for strangers that send it again. */
export class Recorder {
  readonly #chunks = new Map<number, Uint8Array[]>()

  constructor(world: SimulatedWorld) {
    const { network } = world
    const before = network.tap
    network.tap = (from, bytes) => {
      before?.(from, bytes)
      this.#record(from, bytes)
    }
  }

  /** Returns some recorded chunks in any order, some of them changed in one byte. */
  some(port: StrangerPort, prng: Prng): Uint8Array[] {
    const known = this.#chunks.get(PORTS[port]) ?? []
    if (known.length === 0) return []
    return Array.from({ length: prng.integer(1, 5) }, () => {
      const chunk = prng.pick(known).slice()
      if (prng.chance(0.3)) chunk[prng.below(chunk.length)] = prng.pick([0, 1, 127, 128, 255])
      return chunk
    })
  }

  #record(from: SimulatedConnection, bytes: Uint8Array): void {
    if (!from.isInitiator || bytes.length > 4096) return
    const { port } = from.remote
    if (port !== PORTS.quorum && port !== PORTS.election && port !== PORTS.observers) return
    const chunks = this.#chunks.get(port) ?? []
    this.#chunks.set(port, chunks)
    chunks.push(bytes.slice())
    if (chunks.length > KEPT) chunks.shift()
  }
}
