/** The client in Node, Deno and Bun: `connect({ servers })` needs nothing else. */
import { nodeRandom, wakefulNodeClock } from '@zabra/runtime/node'
import { connectWith, type ConnectOptions } from '../connect.ts'
import { digestMd5With } from '../sasl.ts'
import type { Client, Transport } from '../types.ts'
import { published } from './diagnostics.ts'
import { nodeTransport } from './transport.ts'

export * from '../core.ts'
export type { RequestContext } from './diagnostics.ts'
export { nodeTransport, type NodeTransport, type NodeTransportOptions } from './transport.ts'
export { CertificateError, type TlsOptions } from '@zabra/runtime'

/** A login by SASL for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = digestMd5With(nodeRandom)

/** Without certificates of its own it has nothing that clients could not share. */
let defaultTransport: Transport | undefined

/** Opens a session and resolves when it exists; see `connectWith`. */
export function connect(options: ConnectOptions): Promise<Client> {
  // What is wrong with the options is for one place to say.
  const hooks = options !== null && typeof options === 'object' ? options.instrumentation : undefined
  return connectWith(
    hooks === undefined || typeof hooks === 'object'
      ? { ...options, instrumentation: published(hooks) }
      : options,
    {
      transport: (defaultTransport ??= nodeTransport()),
      ports: { clock: wakefulNodeClock, random: nodeRandom },
    },
  )
}
