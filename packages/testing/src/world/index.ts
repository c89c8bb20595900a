/** The simulated world: time, chance, network, disks and processes, all played from one queue of events. */
export { Prng } from './prng.ts'
export { jumpWallClock, setClockRate, type ClockSkew } from './clock.ts'
export { DiskImage, type DiskConditions } from './disk.ts'
export type { ScheduledEvent } from './event-queue.ts'
export { SimulatedNetwork, type Tap, type NetworkConditions } from './network.ts'
export { Host, Incarnation, type CrashKind } from './process.ts'
export { SimulatedWorld, type TraceEvent } from './world.ts'
