import type { Clock, Random } from '@zabra/runtime'
import type { ExplainError, RecogniseProtocol } from './connect-failure.ts'
import type { ConnectFailure, ErrorPolicy, SaslMechanism } from '../client-options.ts'
import type { Instrumentation } from '../instrumentation.ts'
import type { Platform, ServerAddress, Transport } from '../platform.ts'
import type { AuthInfo, RetryFunction, RetryPolicy } from '../types.ts'

/** The options of a client with all defaults filled in. Clients share the object, so it is immutable. */
export interface SessionOptions {
  readonly servers: readonly ServerAddress[]
  readonly transport: Transport
  readonly platform: Platform
  readonly clock: Clock
  readonly random: Random
  readonly sessionTimeoutMs: number
  readonly sessionExpiry: 'renew' | 'close'
  readonly readOnly: boolean
  readonly auth: readonly AuthInfo[]
  readonly sasl: ((server: ServerAddress) => SaslMechanism) | undefined
  readonly timeoutMs: number | undefined
  readonly retry: RetryPolicy | RetryFunction
  /** The chroot of the initial server list. */
  readonly chroot: string
  readonly errorPolicy: ErrorPolicy
  readonly offlineQueue: number
  readonly maxFrameBytes: number
  readonly maxRequestBytes: number
  /** Maximum number of reads in a batch; 0 when batching is off. */
  readonly batchReads: number
  readonly instrumentation: Instrumentation | undefined
  readonly callerStacks: boolean
  readonly onAttemptFailed: ((failure: ConnectFailure) => void) | undefined
  readonly explain: ExplainError | undefined
  readonly recogniseProtocol: RecogniseProtocol | undefined
  readonly redactPath: ((path: string) => string) | undefined
}
