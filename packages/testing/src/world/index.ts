/** The simulated world: time, chance, network, disks and processes, all played from one queue of events. */
export { Chance } from './chance.ts'
export { jumpWall, setRate, type ClockFaults } from './clock.ts'
export { Platter, type DiskTemper } from './disk.ts'
export type { Happening } from './events.ts'
export { Fabric, type Tap, type Weather } from './network.ts'
export { Host, Incarnation, type CrashKind } from './process.ts'
export { World, type Note } from './world.ts'
