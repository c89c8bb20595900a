import { nodeNetwork } from '@zabra/runtime/node'
import { RawClient } from '@zabra/testkit'

/** Opens a session of a raw client at a port of this machine. */
export const openSession = async (port: number, timeoutMs?: number): Promise<RawClient> =>
  RawClient.open(
    await nodeNetwork.connect({ host: '127.0.0.1', port }),
    timeoutMs === undefined ? {} : { timeoutMs },
  )
