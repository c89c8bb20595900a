import type { Client } from './client-api.ts'
import {
  aFunction,
  anObject,
  aTransport,
  checkArgument,
  checkOptionsOf,
  withMethods,
  type Rule,
} from './checks.ts'
import { openClient, type ConnectDefaults, type ConnectOptions } from './connect.ts'
import { recogniseProtocol } from './session/foreign-protocol.ts'
import { ReadBatcher } from './session/read-batcher.ts'
import { trackEnsemble } from './track-ensemble.ts'

const aPlatform: Rule = [
  'an object with a clock and a random source',
  (value) => {
    const { clock, random } = (value ?? {}) as Partial<ConnectDefaults['platform']>
    return withMethods('after')(clock) && withMethods('bytes')(random)
  },
]

/**
 * Opens a session with the transport, the clock and the random source of the caller, and resolves when the server has
 * granted it. Retries for `connectTimeoutMs`, then rejects with an `OperationTimeoutError` that has the last failure. Rejects at
 * once with a `ConnectFailedError` when no attempt at any server can succeed, with a `UsageError` for invalid options, with an
 * `AuthFailedError`, with a `SessionExpiredError` (for a given session with `sessionExpiry: 'close'`), and when the signal
 * aborts.
 */
export async function connectWith(options: ConnectOptions, defaults: ConnectDefaults): Promise<Client> {
  checkArgument('connectWith', 'defaults', defaults, anObject)
  checkOptionsOf('connectWith', defaults, { transport: aTransport, platform: aPlatform, warn: aFunction })
  checkArgument('connectWith', 'the platform', defaults.platform, aPlatform)
  return openClient(options, { ...defaults, Batcher: ReadBatcher, recogniseProtocol, trackEnsemble })
}
