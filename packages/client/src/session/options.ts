import type { Clock, Random } from '@zabra/runtime'
import type {
  AuthInfo,
  Platform,
  ErrorPolicy,
  Instrumentation,
  RetryPolicy,
  SaslMechanism,
  ServerAddress,
  Transport,
} from '../types.ts'

/** The options of a client with everything that it left out. Clients share them, so nothing in them changes. */
export interface SessionOptions {
  readonly servers: readonly ServerAddress[]
  readonly transport: Transport
  readonly platform: Platform
  readonly clock: Clock
  readonly random: Random
  readonly sessionTimeout: number
  readonly sessionExpiry: 'renew' | 'close'
  readonly readOnly: boolean
  readonly auth: readonly AuthInfo[]
  readonly sasl: ((server: ServerAddress) => SaslMechanism) | undefined
  readonly retry: RetryPolicy
  /** The root of the servers that were given first. */
  readonly chroot: string
  readonly errorPolicy: ErrorPolicy
  readonly offlineQueue: number
  readonly maxFrame: number
  readonly maxRequest: number
  /** Most reads that leave together; 0 for clients whose reads all leave alone. */
  readonly batchReads: number
  readonly instrumentation: Instrumentation | undefined
  readonly callerStacks: boolean
  readonly redactPath: ((path: string) => string) | undefined
}
