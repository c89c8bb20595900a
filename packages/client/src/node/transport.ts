import { nodeNetwork } from '@zabra/runtime/node'
import { networkTransport } from '../transport.ts'
import type { Transport } from '../types.ts'

/** TCP of this machine. */
export function nodeTransport(): Transport {
  return networkTransport({ tcp: nodeNetwork })
}
