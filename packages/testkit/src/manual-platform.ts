import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  SeededRandom,
  silentLogger,
  type Logger,
  type Platform,
  type System,
} from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import { syncCompression } from './compression.ts'
import { MemoryHttp } from './memory-http.ts'

/** A system with fixed figures. */
export const fixedSystem: System = {
  pid: 7,
  processIdentity: (pid) => (pid === 7 ? 'this' : undefined),
  residentMemory: () => 1,
  fileDescriptors: () => ({ open: 1, max: 100_000 }),
  environment: () => [['host.name', 'test']],
}

/** A clock that a test advances, and an in-memory network and disk. */
export class ManualPlatform {
  readonly clock: ManualClock
  readonly network: MemoryNetwork
  /** Serves the HTTP port of the platform's server. */
  readonly http = new MemoryHttp()
  readonly disk: MemoryDisk

  constructor(disk: MemoryDisk = new MemoryDisk(), clock: ManualClock = new ManualClock()) {
    this.disk = disk
    this.clock = clock
    disk.now = () => clock.wall()
    this.network = new MemoryNetwork(clock)
  }

  /** Returns a platform on this clock, network and disk. */
  platform(logger: Logger = silentLogger): Platform {
    return {
      clock: this.clock,
      network: this.network,
      networkFactories: { http: () => this.http },
      disk: this.disk,
      random: new SeededRandom(1),
      compression: syncCompression,
      cryptography: nodeCryptography,
      logger,
      system: fixedSystem,
    }
  }

  /** Runs everything that needs no time to pass. */
  untilIdle(): Promise<void> {
    return this.clock.untilIdle()
  }

  /** Advances the clock in steps: what a timer starts may need turns before the next timer falls due. */
  async advance(ms: number, stepMs = 50): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs))
      await this.untilIdle()
    }
  }
}
