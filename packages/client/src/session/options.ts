import type { Clock, Random } from '@zabra/runtime'
import type {
  AuthInfo,
  ClientPorts,
  Instrumentation,
  RetryPolicy,
  SaslMechanism,
  ServerAddress,
  SessionCredentials,
  Transport,
} from '../types.ts'

/** The options of a client with everything that it left out. */
export interface SessionOptions {
  readonly servers: readonly ServerAddress[]
  readonly transport: Transport
  readonly ports: ClientPorts
  readonly clock: Clock
  readonly random: Random
  readonly sessionTimeout: number
  readonly resume: SessionCredentials | undefined
  readonly sessionExpiry: 'renew' | 'close'
  readonly readOnly: boolean
  readonly auth: readonly AuthInfo[]
  readonly sasl: ((server: ServerAddress) => SaslMechanism) | undefined
  readonly retry: RetryPolicy
  readonly leaseMargin: number | undefined
  readonly offlineQueue: number
  readonly maxFrame: number
  readonly maxRequest: number
  readonly instrumentation: Instrumentation | undefined
  readonly callerStacks: boolean
  readonly redactPath: ((path: string) => string) | undefined
}
