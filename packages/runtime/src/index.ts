export type { Cancel, Clock } from './clock.ts'
export type { Random } from './random.ts'
export { ManualClock } from './manual-clock.ts'
export { SeededRandom, Sfc32 } from './seeded-random.ts'
export { MemoryNetwork, type MemoryConnection } from './memory-network.ts'
export { addressBlockOf } from './address-block.ts'
export { AlternativeNameType, NetworkError, shownUrl } from './network.ts'
export type {
  AbortSignalLike,
  Address,
  AlternativeName,
  Connection,
  ConnectionHandler,
  Listener,
  Network,
  PeerIdentity,
  TlsParameters,
  Transport,
} from './network.ts'
export { CertificateError, TlsOptionError } from './tls.ts'
export { tlsFailureOf } from './tls-faults.ts'
export type { TlsFailure, TlsFault } from './tls-faults.ts'
export type {
  HandshakeStats,
  CertificateStore,
  CertificateStoreType,
  FileReads,
  OwnCertificate,
  TlsNetwork,
  TlsOptions,
  TlsVersion,
  WebSocketListenOptions,
} from './tls.ts'
export { MAX_QUERY_PARAMETERS } from './http.ts'
export type { HttpHandler, HttpLimits, HttpRequest, HttpResponse, HttpServer } from './http.ts'
export { DiskError } from './disk.ts'
export type { Disk, DiskReader, DiskSpace, DiskWriter, FileMode } from './disk.ts'
export type { ByteTransform, Compression } from './compression.ts'
export type { Cryptography, Hash } from './cryptography.ts'
export { MemoryDisk } from './memory-disk.ts'
export type { DiskOperation, DiskFault } from './memory-disk.ts'
export { silentLogger } from './logger.ts'
export type { LastLines, Logger, LogLevel } from './logger.ts'
export type { Pauses, System } from './system.ts'
export type { NetworkFactories, Platform } from './platform.ts'
export { invariant, InvariantError } from './invariant.ts'
