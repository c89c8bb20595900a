export type { Cancel, Clock } from './clock.ts'
export type { Random } from './random.ts'
export { ManualClock } from './manual-clock.ts'
export { SeededRandom, Sfc32 } from './seeded-random.ts'
export { MemoryNetwork, type MemoryConnection } from './memory-network.ts'
export { NetworkError } from './network.ts'
export type {
  Abortable,
  Address,
  Connection,
  ConnectionEvents,
  Listener,
  Network,
  Peer,
  Transport,
} from './network.ts'
export { CertificateError, TlsOptionError } from './secure.ts'
export type {
  Handshakes,
  Store,
  StoreType,
  TlsNetwork,
  TlsOptions,
  TlsVersion,
  WebSocketLimits,
} from './secure.ts'
export { NameType, type AlternativeName } from './x509/certificate.ts'
export { DiskError } from './disk.ts'
export type { Disk, DiskReader, DiskWriter } from './disk.ts'
export type { ByteTransform, Compression } from './compression.ts'
export { MemoryDisk } from './memory-disk.ts'
export type { DiskCall, DiskFault } from './memory-disk.ts'
export { silent } from './logger.ts'
export type { Logger } from './logger.ts'
export type { System } from './system.ts'
export type { Networks, Ports } from './ports.ts'
export { invariant, InvariantError } from './invariant.ts'
