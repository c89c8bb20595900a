/** Servers and ensembles for tests, and a simulated world that runs code under a seed. */
export { startServer } from './ensemble/start-server.ts'
export { TestServer, type TestServerOptions } from './ensemble/test-server.ts'
export {
  startEnsemble,
  TestEnsemble,
  type ChildEnsembleOptions,
  type TestEnsembleOptions,
} from './ensemble/test-ensemble.ts'
export { ChildServer, type ChildServerOptions } from './ensemble/child-server.ts'
export type { TestMember } from './ensemble/test-member.ts'
export { expireSession } from './ensemble/expire.ts'
export { simulate, Simulation, type SimulateOptions } from './simulation/simulate.ts'
export {
  CLIENT_PORT,
  SimulatedServer,
  type ServerEndpoint,
  type UnexpectedStop,
} from './simulation/simulated-server.ts'
export {
  DiskImage,
  Host,
  Incarnation,
  jumpWallClock,
  Prng,
  setClockRate,
  SimulatedNetwork,
  SimulatedWorld,
  type ClockSkew,
  type CrashKind,
  type DiskConditions,
  type DiskFault,
  type FileImage,
  type HostState,
  type LogLine,
  type NetworkConditions,
  type ProcessState,
  type ScheduledEvent,
  type SimulatedConnection,
  type Tap,
  type TraceEvent,
} from './world/index.ts'
